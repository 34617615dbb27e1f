#include "verify/isolation/checker/export.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "test/support/temporary_pool.h"
#include "test/verify/isolation/story.h"

namespace flugs::test {
namespace {

std::string exported(const Story& story, const std::string& ending) {
  const TemporaryPath path;
  const std::string name = path.string() + ending;
  REQUIRE(isolation::export_history(story.history(), name).ok());
  std::ifstream file(name);
  std::stringstream text;
  text << file.rdbuf();
  std::remove(name.c_str());
  return text.str();
}

Story lists() {
  Story story;
  story.t(10, 40).append(kListX, 1);
  story.t(20, 30, isolation::Outcome::kAborted).reads(kListX, {});
  story.t(50, 60, isolation::Outcome::kUnknown).append(kListY, 3);
  story.t(70, 80).reads(kListX, {1, 3}).reads(kListY, {});
  return story;
}

}  // namespace

TEST_CASE("a history of lists is exported as Elle's JSON, in the order of time", "[history]") {
  CHECK(exported(lists(), ".json") ==
        R"({"index":0,"time":10,"type":"invoke","process":0,"f":"txn","value":[["append",0,1]]}
{"index":1,"time":20,"type":"invoke","process":1,"f":"txn","value":[["r",0,null]]}
{"index":2,"time":30,"type":"fail","process":1,"f":"txn","value":[["r",0,null]]}
{"index":3,"time":40,"type":"ok","process":0,"f":"txn","value":[["append",0,1]]}
{"index":4,"time":50,"type":"invoke","process":2,"f":"txn","value":[["append",2,3]]}
{"index":5,"time":60,"type":"info","process":2,"f":"txn","value":[["append",2,3]]}
{"index":6,"time":70,"type":"invoke","process":3,"f":"txn","value":[["r",0,null],["r",2,null]]}
{"index":7,"time":80,"type":"ok","process":3,"f":"txn","value":[["r",0,[1,3]],["r",2,[]]]}
)");
}

TEST_CASE("a history of registers is exported as Elle's EDN", "[history]") {
  Story story;
  story.t(10, 20).sees(kRegisterX, 0).write(kRegisterX, 1);
  story.t(30, 40).sees(kRegisterX, 1);
  CHECK(exported(story, ".edn") ==
        R"({:index 0, :time 10, :type :invoke, :process 0, :f :txn, :value [[:r 1 nil] [:w 1 1]]}
{:index 1, :time 20, :type :ok, :process 0, :f :txn, :value [[:r 1 nil] [:w 1 1]]}
{:index 2, :time 30, :type :invoke, :process 1, :f :txn, :value [[:r 1 nil]]}
{:index 3, :time 40, :type :ok, :process 1, :f :txn, :value [[:r 1 1]]}
)");
}

TEST_CASE("histories that cannot be exported are refused", "[history]") {
  Story both;
  both.t().append(kListX, 1).write(kRegisterX, 2);
  CHECK(isolation::export_history(both.history(), "/dev/null").code() ==
        StatusCode::kInvalidArgument);
  CHECK(isolation::export_history(lists().history(), "/no/such/folder/history.json").code() ==
        StatusCode::kIoError);
}

}  // namespace flugs::test
