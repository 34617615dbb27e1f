"""TPC-H's queries by flugs' own query API. The inner joins follow the order of the tables in the
specification. Queries 2, 8 and 9 differ, because their first two tables have no common key. The
conditions of inner joins stand behind the joins: the planner moves them and finds the order. A
subquery that gives one value runs first, in the same transaction. Other subqueries are joins, that
of query 15 too: it reads the same groups."""

import datetime
from decimal import ROUND_FLOOR, Decimal

from flugs import avg, case_when, col, count, count_distinct, lit, max as most, min as least, sum

# pylint: disable=redefined-builtin  # sum, as flugs names it

VOLUME = col("l_extendedprice") * (1 - col("l_discount"))


def day(year, month, of_month):
    return lit(datetime.date(year, month, of_month))


def in_period(name, begin, end):
    return (col(name) >= begin) & (col(name) < end)


def _supplied_by(t, nation):
    return (t.query("supplier").join(t.query("nation"), on=[("s_nationkey", "n_nationkey")])
            .where(col("n_name") == nation))


def q1(t):
    charge = VOLUME * (1 + col("l_tax"))
    return (t.query("lineitem").where(col("l_shipdate") <= day(1998, 9, 2))
            .group_by("l_returnflag", "l_linestatus",
                      agg=[sum("l_quantity"), sum("l_extendedprice"), sum(VOLUME), sum(charge),
                           avg("l_quantity"), avg("l_extendedprice"), avg("l_discount"), count()])
            .order_by("l_returnflag", "l_linestatus"))


def q2(t):
    offers = (t.query("part").join(t.query("partsupp"), on=[("p_partkey", "ps_partkey")])
              .join(t.query("supplier"), on=[("ps_suppkey", "s_suppkey")])
              .join(t.query("nation"), on=[("s_nationkey", "n_nationkey")])
              .join(t.query("region"), on=[("n_regionkey", "r_regionkey")])
              .where((col("p_size") == 15) & col("p_type").like("%BRASS")
                     & (col("r_name") == "EUROPE")))
    cheapest = (offers.group_by("ps_partkey", agg=least("ps_supplycost").alias("least"))
                .select(col("ps_partkey").alias("of_part"), "least"))
    return (offers.join(cheapest, on=[("ps_partkey", "of_part"), ("ps_supplycost", "least")])
            .select("s_acctbal", "s_name", "n_name", "p_partkey", "p_mfgr", "s_address", "s_phone",
                    "s_comment")
            .order_by("s_acctbal", "n_name", "s_name", "p_partkey",
                      descending=[True, False, False, False]).limit(100))


def q3(t):
    return (t.query("customer").join(t.query("orders"), on=[("c_custkey", "o_custkey")])
            .join(t.query("lineitem"), on=[("o_orderkey", "l_orderkey")])
            .where((col("c_mktsegment") == "BUILDING") & (col("o_orderdate") < day(1995, 3, 15))
                   & (col("l_shipdate") > day(1995, 3, 15)))
            .group_by("l_orderkey", "o_orderdate", "o_shippriority",
                      agg=sum(VOLUME).alias("revenue"))
            .order_by("revenue", "o_orderdate", descending=[True, False]).limit(10)
            .select("l_orderkey", "revenue", "o_orderdate", "o_shippriority"))


def q4(t):
    late = t.query("lineitem").where(col("l_commitdate") < col("l_receiptdate"))
    return (t.query("orders").where(in_period("o_orderdate", day(1993, 7, 1), day(1993, 10, 1)))
            .join(late, on=[("o_orderkey", "l_orderkey")], how="semi")
            .group_by("o_orderpriority", agg=count()).order_by("o_orderpriority"))


def q5(t):
    return (t.query("customer").join(t.query("orders"), on=[("c_custkey", "o_custkey")])
            .join(t.query("lineitem"), on=[("o_orderkey", "l_orderkey")])
            .join(t.query("supplier"),
                  on=[("l_suppkey", "s_suppkey"), ("c_nationkey", "s_nationkey")])
            .join(t.query("nation"), on=[("s_nationkey", "n_nationkey")])
            .join(t.query("region"), on=[("n_regionkey", "r_regionkey")])
            .where((col("r_name") == "ASIA")
                   & in_period("o_orderdate", day(1994, 1, 1), day(1995, 1, 1)))
            .group_by("n_name", agg=sum(VOLUME).alias("revenue"))
            .order_by("revenue", descending=True))


def q6(t):
    discount = col("l_discount").between(Decimal("0.05"), Decimal("0.07"))
    return (t.query("lineitem")
            .where(in_period("l_shipdate", day(1994, 1, 1), day(1995, 1, 1)) & discount
                   & (col("l_quantity") < 24))
            .group_by(agg=sum(col("l_extendedprice") * col("l_discount"))))


def q7(t):
    def nations(name):
        return t.query("nation").select(col("n_nationkey").alias(name + "_key"),
                                        col("n_name").alias(name))

    def trade(seller, buyer):
        return (col("supp_nation") == seller) & (col("cust_nation") == buyer)
    return (t.query("supplier").join(t.query("lineitem"), on=[("s_suppkey", "l_suppkey")])
            .join(t.query("orders"), on=[("l_orderkey", "o_orderkey")])
            .join(t.query("customer"), on=[("o_custkey", "c_custkey")])
            .join(nations("supp_nation"), on=[("s_nationkey", "supp_nation_key")])
            .join(nations("cust_nation"), on=[("c_nationkey", "cust_nation_key")])
            .where((trade("FRANCE", "GERMANY") | trade("GERMANY", "FRANCE"))
                   & col("l_shipdate").between(day(1995, 1, 1), day(1996, 12, 31)))
            .group_by("supp_nation", "cust_nation", col("l_shipdate").year().alias("l_year"),
                      agg=sum(VOLUME))
            .order_by("supp_nation", "cust_nation", "l_year"))


def q8(t):
    sellers = t.query("nation").select(col("n_nationkey").alias("seller_key"),
                                       col("n_name").alias("seller"))
    return (t.query("part").join(t.query("lineitem"), on=[("p_partkey", "l_partkey")])
            .join(t.query("supplier"), on=[("l_suppkey", "s_suppkey")])
            .join(t.query("orders"), on=[("l_orderkey", "o_orderkey")])
            .join(t.query("customer"), on=[("o_custkey", "c_custkey")])
            .join(t.query("nation"), on=[("c_nationkey", "n_nationkey")])
            .join(sellers, on=[("s_nationkey", "seller_key")])
            .join(t.query("region"), on=[("n_regionkey", "r_regionkey")])
            .where((col("r_name") == "AMERICA") & (col("p_type") == "ECONOMY ANODIZED STEEL")
                   & col("o_orderdate").between(day(1995, 1, 1), day(1996, 12, 31)))
            .group_by(col("o_orderdate").year().alias("o_year"),
                      agg=[sum(case_when([(col("seller") == "BRAZIL", VOLUME)], 0)).alias("share"),
                           sum(VOLUME).alias("total")])
            .select("o_year", col("share") / col("total")).order_by("o_year"))


def q9(t):
    return (t.query("part").join(t.query("lineitem"), on=[("p_partkey", "l_partkey")])
            .join(t.query("supplier"), on=[("l_suppkey", "s_suppkey")])
            .join(t.query("partsupp"),
                  on=[("l_suppkey", "ps_suppkey"), ("l_partkey", "ps_partkey")])
            .join(t.query("orders"), on=[("l_orderkey", "o_orderkey")])
            .join(t.query("nation"), on=[("s_nationkey", "n_nationkey")])
            .where(col("p_name").contains("green"))
            .group_by("n_name", col("o_orderdate").year().alias("o_year"),
                      agg=sum(VOLUME - col("ps_supplycost") * col("l_quantity")))
            .order_by("n_name", "o_year", descending=[False, True]))


def q10(t):
    return (t.query("customer").join(t.query("orders"), on=[("c_custkey", "o_custkey")])
            .join(t.query("lineitem"), on=[("o_orderkey", "l_orderkey")])
            .join(t.query("nation"), on=[("c_nationkey", "n_nationkey")])
            .where(in_period("o_orderdate", day(1993, 10, 1), day(1994, 1, 1))
                   & (col("l_returnflag") == "R"))
            .group_by("c_custkey", "c_name", "c_acctbal", "c_phone", "n_name", "c_address",
                      "c_comment", agg=sum(VOLUME).alias("revenue"))
            .order_by("revenue", descending=True).limit(20)
            .select("c_custkey", "c_name", "revenue", "c_acctbal", "n_name", "c_address",
                    "c_phone", "c_comment"))


def q11(t, fraction):
    stock = (t.query("partsupp").join(t.query("supplier"), on=[("ps_suppkey", "s_suppkey")])
             .join(t.query("nation"), on=[("s_nationkey", "n_nationkey")])
             .where(col("n_name") == "GERMANY"))
    value = sum(col("ps_supplycost") * col("ps_availqty")).alias("value")
    (total,) = stock.group_by(agg=value).fetchone()
    bound = (total * Decimal(fraction)).quantize(Decimal("0.01"), ROUND_FLOOR)
    return (stock.group_by("ps_partkey", agg=value).where(col("value") > bound)
            .order_by("value", descending=True))


def q12(t):
    is_high = col("o_orderpriority").is_in(["1-URGENT", "2-HIGH"])
    return (t.query("orders").join(t.query("lineitem"), on=[("o_orderkey", "l_orderkey")])
            .where(col("l_shipmode").is_in(["MAIL", "SHIP"])
                   & (col("l_commitdate") < col("l_receiptdate"))
                   & (col("l_shipdate") < col("l_commitdate"))
                   & in_period("l_receiptdate", day(1994, 1, 1), day(1995, 1, 1)))
            .group_by("l_shipmode", agg=[count().where(is_high), count().where(~is_high)])
            .order_by("l_shipmode"))


def q13(t):
    orders = (t.query("orders").where(~col("o_comment").like("%special%requests%"))
              .group_by("o_custkey", agg=count().alias("n")))
    c_count = case_when([(col("n").is_not_null(), col("n"))], 0).alias("c_count")
    return (t.query("customer").join(orders, on=[("c_custkey", "o_custkey")], how="left")
            .group_by(c_count, agg=count().alias("custdist"))
            .order_by("custdist", "c_count", descending=True))


def q14(t):
    promoted = case_when([(col("p_type").like("PROMO%"), VOLUME)], 0)
    return (t.query("lineitem").join(t.query("part"), on=[("l_partkey", "p_partkey")])
            .where(in_period("l_shipdate", day(1995, 9, 1), day(1995, 10, 1)))
            .group_by(agg=[sum(promoted).alias("promoted"), sum(VOLUME).alias("total")])
            .select(100 * col("promoted") / col("total")))


def q15(t):
    revenue = (t.query("lineitem").where(in_period("l_shipdate", day(1996, 1, 1), day(1996, 4, 1)))
               .group_by("l_suppkey", agg=sum(VOLUME).alias("total_revenue")))
    best = revenue.group_by(agg=most("total_revenue").alias("best"))
    return (t.query("supplier").join(revenue, on=[("s_suppkey", "l_suppkey")])
            .join(best, on=[("total_revenue", "best")])
            .select("s_suppkey", "s_name", "s_address", "s_phone", "total_revenue")
            .order_by("s_suppkey"))


def q16(t):
    blamed = t.query("supplier").where(col("s_comment").like("%Customer%Complaints%"))
    return (t.query("partsupp").join(t.query("part"), on=[("ps_partkey", "p_partkey")])
            .where((col("p_brand") != "Brand#45") & ~col("p_type").like("MEDIUM POLISHED%")
                   & col("p_size").is_in([49, 14, 23, 45, 19, 3, 36, 9]))
            .join(blamed, on=[("ps_suppkey", "s_suppkey")], how="anti")
            .group_by("p_brand", "p_type", "p_size", agg=count_distinct("ps_suppkey").alias("n"))
            .order_by("n", "p_brand", "p_type", "p_size", descending=[True, False, False, False]))


def q17(t):
    lines = (t.query("lineitem").join(t.query("part"), on=[("l_partkey", "p_partkey")])
             .where((col("p_brand") == "Brand#23") & (col("p_container") == "MED BOX")))
    usual = (lines.group_by("l_partkey", agg=avg("l_quantity").alias("usual"))
             .select(col("l_partkey").alias("of_part"), "usual"))
    return (lines.join(usual, on=[("l_partkey", "of_part")])
            .where(col("l_quantity") < 0.2 * col("usual"))
            .group_by(agg=sum("l_extendedprice").alias("price")).select(col("price") / 7.0))


def q18(t):
    large = (t.query("lineitem").group_by("l_orderkey", agg=sum("l_quantity").alias("all"))
             .where(col("all") > 300).select(col("l_orderkey").alias("of_order")))
    return (t.query("customer").join(t.query("orders"), on=[("c_custkey", "o_custkey")])
            .join(t.query("lineitem"), on=[("o_orderkey", "l_orderkey")])
            .join(large, on=[("o_orderkey", "of_order")], how="semi")
            .group_by("c_name", "c_custkey", "o_orderkey", "o_orderdate", "o_totalprice",
                      agg=sum("l_quantity").alias("quantity"))
            .order_by("o_totalprice", "o_orderdate", descending=[True, False]).limit(100))


def q19(t):
    def kind(brand, size_of_box, boxes, least_quantity, size):
        containers = [f"{size_of_box} {box}" for box in boxes]
        return ((col("p_brand") == brand) & col("p_container").is_in(containers)
                & col("l_quantity").between(least_quantity, least_quantity + 10)
                & col("p_size").between(1, size)
                & col("l_shipmode").is_in(["AIR", "AIR REG"])
                & (col("l_shipinstruct") == "DELIVER IN PERSON"))
    return (t.query("lineitem").join(t.query("part"), on=[("l_partkey", "p_partkey")])
            .where(kind("Brand#12", "SM", ["CASE", "BOX", "PACK", "PKG"], 1, 5)
                   | kind("Brand#23", "MED", ["BAG", "BOX", "PKG", "PACK"], 10, 10)
                   | kind("Brand#34", "LG", ["CASE", "BOX", "PACK", "PKG"], 20, 15))
            .group_by(agg=sum(VOLUME)))


def q20(t):
    parts = t.query("part").where(col("p_name").like("forest%"))
    sold = (t.query("lineitem").where(in_period("l_shipdate", day(1994, 1, 1), day(1995, 1, 1)))
            .group_by("l_partkey", "l_suppkey", agg=sum("l_quantity").alias("quantity")))
    stock = (t.query("partsupp")
             .join(parts, on=[("ps_partkey", "p_partkey")], how="semi")
             .join(sold, on=[("ps_partkey", "l_partkey"), ("ps_suppkey", "l_suppkey")])
             .where(col("ps_availqty") > 0.5 * col("quantity")))
    return (_supplied_by(t, "CANADA").join(stock, on=[("s_suppkey", "ps_suppkey")], how="semi")
            .select("s_name", "s_address").order_by("s_name"))


def q21(t):
    late = t.query("lineitem").where(col("l_receiptdate") > col("l_commitdate"))

    def others(lines):
        return lines.select(col("l_orderkey").alias("other_order"),
                            col("l_suppkey").alias("other_supplier"))
    is_other = col("other_supplier") != col("l_suppkey")
    return (t.query("supplier").join(late, on=[("s_suppkey", "l_suppkey")])
            .join(t.query("orders"), on=[("l_orderkey", "o_orderkey")])
            .join(t.query("nation"), on=[("s_nationkey", "n_nationkey")])
            .where((col("o_orderstatus") == "F") & (col("n_name") == "SAUDI ARABIA"))
            .join(others(t.query("lineitem")), on=[("l_orderkey", "other_order")], how="semi",
                  also=is_other)
            .join(others(late), on=[("l_orderkey", "other_order")], how="anti", also=is_other)
            .group_by("s_name", agg=count().alias("numwait"))
            .order_by("numwait", "s_name", descending=[True, False]).limit(100))


def q22(t):
    code = col("c_phone").substring(1, 2)
    customers = t.query("customer").where(
        code.is_in(["13", "31", "23", "29", "30", "18", "17"]))
    (usual,) = customers.where(col("c_acctbal") > 0).group_by(agg=avg("c_acctbal")).fetchone()
    return (customers.where(col("c_acctbal") > usual)
            .join(t.query("orders"), on=[("c_custkey", "o_custkey")], how="anti")
            .group_by(code.alias("cntrycode"), agg=[count(), sum("c_acctbal")])
            .order_by("cntrycode"))


def queries(fraction):
    """Name -> the query, of a transaction."""
    made = {f"Q{number}": globals()[f"q{number}"] for number in range(1, 23)}
    made["Q11"] = lambda t: q11(t, fraction)
    return made
