#include "bench/tpcc/ch_queries.h"

#include <array>
#include <vector>

// Each query is below its SQL. All of them follow two habits. The table that streams comes first,
// and the table that is held in memory is the right input of a join, filtered before the join. A
// value that depends only on an item or a customer is computed once per item or customer, not once
// per order line that is joined with it.

namespace flugs::bench {

namespace {

using query::avg;
using query::case_when;
using query::col;
using query::constant;
using query::count;
using query::desc;
using query::Expr;
using query::JoinKey;
using query::Query;
using query::substring;
using query::sum;
using query::timestamp;

Expr since(const ChPeriod& period) { return constant(Value::timestamp(period.since_us)); }
Expr until(const ChPeriod& period) { return constant(Value::timestamp(period.until_us)); }

std::vector<JoinKey> order_of_line() {
  return {{"ol_w_id", "o_w_id"}, {"ol_d_id", "o_d_id"}, {"ol_o_id", "o_id"}};
}
std::vector<JoinKey> line_of_order() {
  return {{"o_w_id", "ol_w_id"}, {"o_d_id", "ol_d_id"}, {"o_id", "ol_o_id"}};
}
std::vector<JoinKey> customer_of_order() {
  return {{"o_w_id", "c_w_id"}, {"o_d_id", "c_d_id"}, {"o_c_id", "c_id"}};
}
std::vector<JoinKey> order_of_customer() {
  return {{"c_w_id", "o_w_id"}, {"c_d_id", "o_d_id"}, {"c_id", "o_c_id"}};
}

constexpr std::string_view kSql1 = R"(
  select ol_number, sum(ol_quantity), sum(ol_amount), avg(ol_quantity), avg(ol_amount) / 100.0,
         count(*)
  from order_line
  where ol_delivery_d > $since
  group by ol_number
  order by ol_number)";
}  // namespace

Query ch_q1(const ChPeriod& period) {
  return Query::table("order_line")
      .where(col("ol_delivery_d") > since(period))
      .group_by({"ol_number"}, {sum("ol_quantity").as("sum_qty"), sum("ol_amount").as("sum_amount"),
                                avg("ol_quantity").as("avg_qty"), avg("ol_amount").as("avg_amount"),
                                count().as("count_order")})
      .order_by({"ol_number"});
}

namespace {
constexpr std::string_view kSql3 = R"(
  select ol_o_id, ol_w_id, ol_d_id, sum(ol_amount) as revenue, o_entry_d
  from customer, new_order, orders, order_line
  where c_state like 'A%'
    and c_id = o_c_id and c_w_id = o_w_id and c_d_id = o_d_id
    and no_w_id = o_w_id and no_d_id = o_d_id and no_o_id = o_id
    and ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id
    and o_entry_d > $since
  group by ol_o_id, ol_w_id, ol_d_id, o_entry_d
  order by revenue desc, o_entry_d)";
}  // namespace

Query ch_q3(const ChPeriod& period) {
  const Query open_orders =
      Query::table("orders")
          .where(col("o_entry_d") > since(period))
          .semi_join(Query::table("customer").where(col("c_state").starts_with("A")),
                     customer_of_order())
          .semi_join(Query::table("new_order"),
                     {{"o_w_id", "no_w_id"}, {"o_d_id", "no_d_id"}, {"o_id", "no_o_id"}});
  return Query::table("order_line")
      .join(open_orders, order_of_line())
      .group_by({"ol_o_id", "ol_w_id", "ol_d_id", "o_entry_d"}, {sum("ol_amount").as("revenue")})
      .select({"ol_o_id", "ol_w_id", "ol_d_id", "revenue", "o_entry_d"})
      .order_by({desc("revenue"), "o_entry_d"});
}

namespace {
constexpr std::string_view kSql4 = R"(
  select o_ol_cnt, count(*)
  from orders
  where o_entry_d >= $since and o_entry_d < $until
    and exists (select * from order_line
                where o_id = ol_o_id and o_w_id = ol_w_id and o_d_id = ol_d_id
                  and ol_delivery_d >= o_entry_d)
  group by o_ol_cnt
  order by o_ol_cnt)";
}  // namespace

Query ch_q4(const ChPeriod& period) {
  // Some line is delivered late enough if the last one is; one row for each order, not for each
  // line.
  const Query last_deliveries =
      Query::table("order_line")
          .group_by({"ol_w_id", "ol_d_id", "ol_o_id"}, {query::max("ol_delivery_d").as("last")});
  return Query::table("orders")
      .where(col("o_entry_d") >= since(period) && col("o_entry_d") < until(period))
      .semi_join(last_deliveries, line_of_order(), col("last") >= col("o_entry_d"))
      .group_by({"o_ol_cnt"}, {count().as("order_count")})
      .order_by({"o_ol_cnt"});
}

namespace {
constexpr std::string_view kSql6 = R"(
  select sum(ol_amount)
  from order_line
  where ol_delivery_d >= 915148800000000 -- 1999-01-01
    and ol_delivery_d < $until
    and ol_quantity between 1 and 100000)";
}  // namespace

Query ch_q6(const ChPeriod& period) {
  return Query::table("order_line")
      .where(col("ol_delivery_d") >= timestamp(1999, 1, 1) &&
             col("ol_delivery_d") < until(period) && col("ol_quantity").between(1, 100'000))
      .group_by({}, {sum("ol_amount").as("revenue")});
}

namespace {
constexpr std::string_view kSql12 = R"(
  select o_ol_cnt,
         sum(case when o_carrier_id = 1 or o_carrier_id = 2 then 1 else 0 end),
         sum(case when o_carrier_id <> 1 and o_carrier_id <> 2 then 1 else 0 end)
  from orders, order_line
  where ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id
    and o_entry_d <= ol_delivery_d and ol_delivery_d < $until
  group by o_ol_cnt
  order by o_ol_cnt)";
}  // namespace

Query ch_q12(const ChPeriod& period) {
  const Expr urgent = col("o_carrier_id").in({1, 2});
  return Query::table("order_line")
      .where(col("ol_delivery_d") < until(period))
      .join(Query::table("orders"), order_of_line(), col("o_entry_d") <= col("ol_delivery_d"))
      .group_by({"o_ol_cnt"}, {sum(case_when({{urgent, 1}}, 0)).as("high_line_count"),
                               sum(case_when({{!urgent, 1}}, 0)).as("low_line_count")})
      .order_by({"o_ol_cnt"});
}

namespace {
constexpr std::string_view kSql13 = R"(
  select c_count, count(*) as custdist
  from (select c_id, count(o_id) as c_count
        from customer left outer join orders
          on c_w_id = o_w_id and c_d_id = o_d_id and c_id = o_c_id and o_carrier_id > 8
        group by c_id) as c_orders
  group by c_count
  order by custdist desc, c_count desc)";
}  // namespace

Query ch_q13(const ChPeriod&) {
  return Query::table("customer")
      .left_join(Query::table("orders").where(col("o_carrier_id") > 8), order_of_customer())
      .group_by({"c_id"}, {count("o_id").as("c_count")})
      .group_by({"c_count"}, {count().as("custdist")})
      .order_by({desc("custdist"), desc("c_count")});
}

namespace {
constexpr std::string_view kSql14 = R"(
  select 100.0 * sum(case when i_data like 'PR%' then ol_amount else 0 end)
         / (100 + sum(ol_amount))
  from order_line, item
  where ol_i_id = i_id and ol_delivery_d >= $since and ol_delivery_d < $until)";
}  // namespace

Query ch_q14(const ChPeriod& period) {
  const Query items =
      Query::table("item").select({"i_id", col("i_data").starts_with("PR").as("is_promotion")});
  return Query::table("order_line")
      .where(col("ol_delivery_d") >= since(period) && col("ol_delivery_d") < until(period))
      .join(items, {{"ol_i_id", "i_id"}})
      .group_by({}, {sum(case_when({{col("is_promotion"), col("ol_amount")}}, 0)).as("promotion"),
                     sum("ol_amount").as("total")})
      .select({(100 * col("promotion") / (1 + col("total"))).as("promo_revenue")});
}

namespace {
constexpr std::string_view kSql17 = R"(
  select sum(ol_amount) / 200.0
  from order_line,
       (select i_id, avg(ol_quantity) as usual
        from item, order_line
        where i_data like '%b' and ol_i_id = i_id
        group by i_id) as t
  where ol_i_id = t.i_id and ol_quantity < t.usual)";
}  // namespace

Query ch_q17(const ChPeriod&) {
  const Query lines = Query::table("order_line")
                          .semi_join(Query::table("item").where(col("i_data").ends_with("b")),
                                     {{"ol_i_id", "i_id"}});
  const Query usual =
      lines.group_by({col("ol_i_id").as("item")}, {avg("ol_quantity").as("usual_quantity")});
  return lines.join(usual, {{"ol_i_id", "item"}}, col("ol_quantity") < col("usual_quantity"))
      .group_by({}, {sum("ol_amount").as("total")})
      .select({(col("total") / 2).as("avg_yearly")});
}

namespace {
constexpr std::string_view kSql18 = R"(
  select c_last, c_id, o_id, o_entry_d, o_ol_cnt, sum(ol_amount) as revenue
  from customer, orders, order_line
  where c_id = o_c_id and c_w_id = o_w_id and c_d_id = o_d_id
    and ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id
  group by o_id, o_w_id, o_d_id, c_id, c_last, o_entry_d, o_ol_cnt
  having sum(ol_amount) > 20000
  order by revenue desc, o_entry_d)";
}  // namespace

Query ch_q18(const ChPeriod&) {
  const Query large =
      Query::table("order_line")
          .group_by({"ol_w_id", "ol_d_id", "ol_o_id"}, {sum("ol_amount").as("revenue")})
          .having(col("revenue") > 200);
  return Query::table("customer")
      .join(Query::table("orders").join(large, line_of_order()), order_of_customer())
      .select({"c_last", "c_id", "o_id", "o_entry_d", "o_ol_cnt", "revenue"})
      .order_by({desc("revenue"), "o_entry_d"});
}

namespace {
constexpr std::string_view kSql19 = R"(
  select sum(ol_amount)
  from order_line, item
  where ol_i_id = i_id and ol_quantity between 1 and 10 and i_price between 100 and 40000000
    and (i_data like '%a' and ol_w_id in (1, 2, 3) or
         i_data like '%b' and ol_w_id in (1, 2, 4) or
         i_data like '%c' and ol_w_id in (1, 3, 5)))";
}  // namespace

Query ch_q19(const ChPeriod&) {
  const Expr data = col("i_data");
  const Query items = Query::table("item")
                          .where(col("i_price").between(1, 400'000))
                          .where(data.ends_with("a") || data.ends_with("b") || data.ends_with("c"))
                          .select({"i_id", data.ends_with("a").as("a"), data.ends_with("b").as("b"),
                                   data.ends_with("c").as("c")});
  const Expr warehouse = col("ol_w_id");
  return Query::table("order_line")
      .where(warehouse.between(1, 5) && col("ol_quantity").between(1, 10))
      .join(items, {{"ol_i_id", "i_id"}},
            (col("a") && warehouse.in({1, 2, 3})) || (col("b") && warehouse.in({1, 2, 4})) ||
                (col("c") && warehouse.in({1, 3, 5})))
      .group_by({}, {sum("ol_amount").as("revenue")});
}

namespace {
constexpr std::string_view kSql22 = R"(
  select substr(c_state, 1, 1) as country, count(*), sum(c_balance)
  from customer
  where substr(c_phone, 1, 1) in ('1', '2', '3', '4', '5', '6', '7')
    and c_balance > (select avg(c_balance) from customer
                     where c_balance > 0
                       and substr(c_phone, 1, 1) in ('1', '2', '3', '4', '5', '6', '7'))
    and not exists (select * from orders
                    where o_c_id = c_id and o_w_id = c_w_id and o_d_id = c_d_id)
  group by substr(c_state, 1, 1)
  order by substr(c_state, 1, 1))";
}  // namespace

Query ch_q22(const ChPeriod&) {
  const Query customers =
      Query::table("customer")
          .where(substring(col("c_phone"), 1, 1).in({"1", "2", "3", "4", "5", "6", "7"}));
  const Query average =
      customers.where(col("c_balance") > 0).group_by({}, {avg("c_balance").as("average")});
  // The average is one row, and each customer's partner.
  return customers.join(average, {{Expr(1), Expr(1)}}, col("c_balance") > col("average"))
      .anti_join(Query::table("orders"), order_of_customer())
      .group_by({substring(col("c_state"), 1, 1).as("country")},
                {count().as("numcust"), sum("c_balance").as("totacctbal")})
      .order_by({"country"});
}

std::span<const ChQuery> ch_queries() {
  static constexpr std::array<ChQuery, 11> kQueries = {{
      {"Q1", "delivered lines by their number", ch_q1, kSql1},
      {"Q3", "open orders of states with A, by revenue", ch_q3, kSql3},
      {"Q4", "delivered orders by number of lines", ch_q4, kSql4},
      {"Q6", "revenue of delivered lines", ch_q6, kSql6},
      {"Q12", "lines of urgent carriers and others", ch_q12, kSql12},
      {"Q13", "customers by number of orders", ch_q13, kSql13},
      {"Q14", "share of promoted items", ch_q14, kSql14},
      {"Q17", "revenue of unusually small lines", ch_q17, kSql17},
      {"Q18", "large orders and their customers", ch_q18, kSql18},
      {"Q19", "revenue of certain items", ch_q19, kSql19},
      {"Q22", "rich customers without orders", ch_q22, kSql22},
  }};
  return kQueries;
}

}  // namespace flugs::bench
