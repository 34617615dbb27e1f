#include "bench/tpcc/tpcc_population.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "bench/tpcc/ch_tables.h"
#include "test/ch/small_tpcc.h"
#include "test/ch/sqlite_copy.h"

namespace flugs::test {

namespace {

/// A condition without violations: clause 3.3.2 of TPC-C's specification, by its numbers; E follows
/// from the transactions.
struct Condition {
  const char* name;
  const char* violations;
};

constexpr Condition kConditions[] = {
    {"1",
     "select count(*) from warehouse where w_ytd <> "
     "(select sum(d_ytd) from district where d_w_id = w_id)"},
    {"2",
     "select count(*) from district where d_next_o_id - 1 <> "
     "(select max(o_id) from orders where o_w_id = d_w_id and o_d_id = d_id) or "
     "d_next_o_id - 1 <> "
     "(select max(no_o_id) from new_order where no_w_id = d_w_id and no_d_id = d_id)"},
    {"3",
     "select count(*) from (select 1 from new_order group by no_w_id, no_d_id "
     "having max(no_o_id) - min(no_o_id) + 1 <> count(*))"},
    {"4", "select (select sum(o_ol_cnt) from orders) - (select count(*) from order_line)"},
    {"5",
     "select count(*) from orders left join new_order "
     "on no_w_id = o_w_id and no_d_id = o_d_id and no_o_id = o_id "
     "where (o_carrier_id is null) <> (no_o_id is not null)"},
    {"6",
     "select count(*) from orders where o_ol_cnt <> (select count(*) from order_line "
     "where ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id)"},
    {"7",
     "select count(*) from order_line join orders "
     "on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id "
     "where (ol_delivery_d is null) <> (o_carrier_id is null)"},
    {"8",
     "select count(*) from warehouse where w_ytd <> "
     "(select sum(h_amount) from history where h_w_id = w_id)"},
    {"9",
     "select count(*) from district where d_ytd <> "
     "(select sum(h_amount) from history where h_w_id = d_w_id and h_d_id = d_id)"},
    {"10",
     "select count(*) from customer left join (select h_c_w_id, h_c_d_id, h_c_id, "
     "sum(h_amount) as paid from history group by 1, 2, 3) "
     "on h_c_w_id = c_w_id and h_c_d_id = c_d_id and h_c_id = c_id "
     "left join (select o_w_id, o_d_id, o_c_id, sum(ol_amount) as delivered "
     "from orders join order_line "
     "on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id "
     "where ol_delivery_d is not null group by o_w_id, o_d_id, o_c_id) "
     "on o_w_id = c_w_id and o_d_id = c_d_id and o_c_id = c_id "
     "where c_balance <> coalesce(delivered, 0) - paid"},
    {"12",
     "select count(*) from customer left join (select o_w_id, o_d_id, o_c_id, "
     "sum(ol_amount) as delivered from orders join order_line "
     "on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id "
     "where ol_delivery_d is not null group by o_w_id, o_d_id, o_c_id) "
     "on o_w_id = c_w_id and o_d_id = c_d_id and o_c_id = c_id "
     "where c_balance + c_ytd_payment <> coalesce(delivered, 0)"},
    {"E stock",
     "select count(*) from stock left join (select ol_supply_w_id as w, ol_i_id as i, "
     "sum(ol_quantity) as quantity, count(*) as lines, "
     "sum(ol_supply_w_id <> ol_w_id) as remote from order_line where ol_o_id > 100 "
     "group by 1, 2) on w = s_w_id and i = s_i_id where s_ytd <> coalesce(quantity, 0) "
     "or s_order_cnt <> coalesce(lines, 0) or s_remote_cnt <> coalesce(remote, 0) or "
     "s_quantity not between 10 and 100"},
    {"E payments",
     "select count(*) from customer left join (select h_c_w_id, h_c_d_id, h_c_id, "
     "count(*) as payments, sum(h_amount) as paid from history group by 1, 2, 3) "
     "on h_c_w_id = c_w_id and h_c_d_id = c_d_id and h_c_id = c_id "
     "where c_payment_cnt <> payments or c_ytd_payment <> paid"},
    {"E deliveries",
     "select (select sum(c_delivery_cnt) from customer) - "
     "(select count(*) from orders where o_id > 70 and o_carrier_id is not null)"},
    {"E amounts",
     "select count(*) from order_line join item on i_id = ol_i_id "
     "where ol_o_id > 100 and ol_amount <> ol_quantity * i_price"},
    {"E times", "select count(*) - count(distinct o_entry_d) from orders"},
    {"E delivered later",
     "select count(*) from order_line join orders "
     "on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id "
     "where ol_delivery_d < o_entry_d"},
};

void check_conditions(const SqliteCopy& sqlite) {
  for (const Condition& condition : kConditions) {
    INFO("condition " << condition.name);
    CHECK(sqlite.number(condition.violations) == 0);
  }
}

SqliteCopy copy_of(SmallTpcc& tpcc) {
  const Transaction snapshot = must(tpcc.database->begin(AccessMode::kReadOnly));
  return SqliteCopy(*tpcc.database, snapshot,
                    {"warehouse", "district", "customer", "history", "new_order", "orders",
                     "order_line", "stock", "item"});
}

}  // namespace

TEST_CASE("a loaded population is that of TPC-C's specification", "[tpcc]") {
  SmallTpcc tpcc(0);
  const SqliteCopy sqlite = copy_of(tpcc);
  check_conditions(sqlite);
  for (const auto& [table, rows] :
       {std::pair{"warehouse", 5}, std::pair{"district", 50}, std::pair{"customer", 5000},
        std::pair{"history", 5000}, std::pair{"orders", 5000}, std::pair{"new_order", 1500},
        std::pair{"stock", 25'000}, std::pair{"item", 5000}})
    CHECK(sqlite.number("select count(*) from " + std::string(table)) == rows);
  CHECK(sqlite.number("select count(*) from order_line") ==
        static_cast<std::int64_t>(tpcc.load.order_lines));
  CHECK(static_cast<double>(tpcc.load.order_lines) / 5000 == Approx(10).epsilon(0.02));
  // A permutation: every customer has one order.
  CHECK(sqlite.number("select count(distinct o_w_id * 100000 + o_d_id * 1000 + o_c_id) "
                      "from orders") == 5000);
  const auto share = [&sqlite](const std::string& what, double expected) {
    INFO(what);
    CHECK(static_cast<double>(sqlite.number("select sum(" + what + ") from stock")) / 25'000 ==
          Approx(expected).epsilon(0.1));
  };
  share("s_data like '%ORIGINAL%'", 0.1);
  share("length(s_data)", 38);
  share("s_quantity", 55);
  share("s_dist_01 < s_dist_02", 0.5);
  // Texts contain all letters and digits: the patterns of the queries and the nations rely on it.
  CHECK(sqlite.number("select count(distinct substr(c_state, 1, 1)) from customer") == 62);
  CHECK(sqlite.number("select count(distinct substr(c_phone, 1, 1)) from customer") == 10);
  CHECK(sqlite.number("select count(distinct substr(i_data, -1)) from item") == 62);
}

TEST_CASE("the history keeps TPC-C's conditions and touches a third of the orders", "[tpcc]") {
  SmallTpcc tpcc(bench::enough_rounds(bench::TpccOptions{.customers_per_district = 100}));
  const SqliteCopy sqlite = copy_of(tpcc);
  check_conditions(sqlite);
  const bench::TpccHistory& history = tpcc.history;
  CHECK(history.orders_entered + history.orders_rolled_back == 1000);
  CHECK(history.orders_rolled_back > 0);
  CHECK(history.payments == 1000);
  CHECK(history.orders_delivered == 1000);
  const double touched = static_cast<double>(history.orders_delivered + history.orders_entered);
  CHECK(touched / static_cast<double>(5000 + history.orders_entered) > 0.3);
  CHECK(sqlite.number("select count(*) from orders") ==
        static_cast<std::int64_t>(5000 + history.orders_entered));
  CHECK(sqlite.number("select max(o_entry_d) from orders") <= history.last_us);
  CHECK(sqlite.number("select sum(s_remote_cnt) from stock") > 0);
  CHECK(sqlite.number("select count(*) from orders where o_all_local = 0") > 0);
  CHECK(sqlite.number("select count(*) from customer where c_credit = 'BC' and "
                      "c_data like c_id || ' ' || c_d_id || ' ' || c_w_id || ' %'") > 0);
  must(tpcc.database->check());
}

TEST_CASE("the same seed gives the same database", "[tpcc]") {
  SmallTpcc first(2);
  SmallTpcc second(2);
  const SqliteCopy first_rows = copy_of(first);
  const SqliteCopy second_rows = copy_of(second);
  for (const char* sql : {"select * from customer order by c_w_id, c_d_id, c_id",
                          "select * from orders order by o_entry_d",
                          "select * from order_line order by ol_w_id, ol_d_id, ol_o_id, ol_number"})
    CHECK((first_rows.rows(sql) == second_rows.rows(sql)));
}

TEST_CASE("CH-benCHmark's own tables have a nation for each letter of a state", "[tpcc]") {
  TemporaryDatabase database;
  must(bench::make_ch_tables(*database, 1));
  const Transaction snapshot = must(database->begin(AccessMode::kReadOnly));
  const SqliteCopy sqlite(*database, snapshot, {"region", "nation", "supplier"});
  for (const auto& [expected, sql] :
       {std::pair{5, "select count(*) from region"},
        std::pair{62, "select count(*) from nation join region on r_regionkey = n_regionkey"},
        std::pair{22,
                  "select count(*) from nation join region on r_regionkey = n_regionkey "
                  "where r_name = 'Europe'"},
        std::pair{10'000,
                  "select count(*) from supplier join nation on n_nationkey = su_nationkey "
                  "where su_suppkey between 0 and 9999"},
        std::pair{62, "select count(distinct su_nationkey) from supplier"},
        std::pair{10,
                  "select count(*) from nation "
                  "where n_nationkey between unicode('0') and unicode('9')"},
        std::pair{26,
                  "select count(*) from nation "
                  "where n_nationkey between unicode('a') and unicode('z')"},
        std::pair{54, "select n_nationkey from nation where n_name = 'Germany'"},
        std::pair{78, "select n_nationkey from nation where n_name = 'Cambodia'"},
        std::pair{122, "select n_nationkey from nation where n_name = 'Botswana'"}}) {
    INFO(sql);
    CHECK(sqlite.number(sql) == expected);
  }
  const std::int64_t bad =
      sqlite.number("select count(*) from supplier where su_comment like '%bad%'");
  CHECK(bad > 50);
  CHECK(bad < 200);
  CHECK(sqlite.number("select sum(su_acctbal < 0) from supplier") > 0);
}

}  // namespace flugs::test
