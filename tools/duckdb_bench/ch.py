"""CH-benCHmark: a pool made by `flugs bench ch`, TPC-C's transactions on it, and its invariants."""

import datetime
import random
import subprocess
from decimal import Decimal

import flugs

from duckdb_bench.queries import read_queries

TABLES = ("warehouse", "district", "customer", "history", "new_order", "orders", "order_line",
          "stock", "item", "region", "nation", "supplier")
# Of the dates that the population and its history have, and those of the transactions below.
SINCE, UNTIL = "timestamp '2025-12-31'", "timestamp '2126-01-01'"
DISTRICTS = 10


def make_pool(tool, path, warehouses, customers=3000, items=100_000):
    """TPC-C's tables with a history of transactions, and CH-benCHmark's three."""
    subprocess.run([tool, "bench", "ch", "--warehouses", str(warehouses), "--customers",
                    str(customers), "--items", str(items), "--runs", "1", "--pool", path, "--keep"],
                   check=True, stdout=subprocess.DEVNULL)


def queries():
    return read_queries("ch.sql", since=SINCE, until=UNTIL)


# Of each pair both sides are equal in every snapshot (the benchmark's equations C1 to C7, and the
# conditions 1, 3 and 8 of TPC-C). `{loaded}` is the number of orders of a district when loaded.
INVARIANTS = (
    ("payments are booked at warehouses and districts",
     "select sum(w_ytd) from warehouse", "select sum(d_ytd) from district"),
    ("payments are in the history",
     "select sum(w_ytd) from warehouse", "select sum(h_amount) from history"),
    ("what was delivered was paid or is owed",
     "select sum(ol_amount) from order_line where ol_delivery_d is not null",
     "select sum(c_balance + c_ytd_payment) from customer"),
    ("delivered lines are those of orders with a carrier",
     "select count(*) from order_line where ol_delivery_d is not null",
     "select sum(o_ol_cnt)::bigint from orders where o_carrier_id is not null"),
    ("orders count their lines",
     "select count(*) from order_line", "select sum(o_ol_cnt)::bigint from orders"),
    ("districts number their orders",
     "select sum(d_next_o_id - 1)::bigint from district", "select count(*) from orders"),
    ("new orders have no carrier",
     "select count(*) from new_order", "select count(*) from orders where o_carrier_id is null"),
    ("stock counts the orders",
     "select sum(s_order_cnt)::bigint from stock",
     "select count(*) from order_line where ol_o_id > {loaded}"),
    ("stock counts what was ordered",
     "select sum(s_ytd)::bigint from stock",
     "select sum(ol_quantity)::bigint from order_line where ol_o_id > {loaded}"),
    ("new orders have no gap",
     "select sum(last - first + 1)::bigint from (select max(no_o_id) as last, min(no_o_id) as first"
     " from new_order group by no_w_id, no_d_id)", "select count(*) from new_order"),
)


class Terminal:
    """New-Order, Payment and Delivery, ten, ten and one of them in turn: what TPC-C writes."""

    def __init__(self, db, seed):
        self._db = db
        self._random = random.Random(seed)
        self._warehouses = len(db["warehouse"])
        self._customers = len(db["customer"]) // (self._warehouses * DISTRICTS)
        self._items = len(db["item"])
        self._now = datetime.datetime(2030, 1, 1) + datetime.timedelta(days=seed)
        self.done = 0

    def __call__(self):
        self._now += datetime.timedelta(milliseconds=1)
        turn = self.done % 21
        work = self._deliver if turn == 20 else self._pay if turn % 2 else self._order
        try:
            self._db.run(work)
        except flugs.NotFound as error:
            if error.table != "item":  # one New-Order in a hundred is rolled back
                raise
        self.done += 1

    def _place(self):
        return self._random.randint(1, self._warehouses), self._random.randint(1, DISTRICTS)

    def _order(self, t):
        draw = self._random
        w, d = self._place()
        number = t.lock("district", (w, d))["d_next_o_id"]
        t.update("district", (w, d), {"d_next_o_id": number + 1})
        count = draw.randint(5, 15)
        items = sorted(draw.sample(range(1, self._items + 1), count))
        t.insert("orders", (w, d, number, draw.randint(1, self._customers), self._now, None, count,
                            1))
        t.insert("new_order", (w, d, number))
        if draw.randrange(100) == 0:
            items[-1] = self._items + 1
        for line, i in enumerate(items, 1):
            price = t.find("item", i)["i_price"]
            stock = t.lock("stock", (w, i))
            quantity = draw.randint(1, 10)
            left = stock["s_quantity"] - quantity
            t.update("stock", (w, i), {
                "s_quantity": left if left >= 10 else left + 91,
                "s_ytd": stock["s_ytd"] + quantity, "s_order_cnt": stock["s_order_cnt"] + 1})
            t.insert("order_line", (w, d, number, line, i, w, None, quantity, quantity * price,
                                    stock[f"s_dist_{d:02}"]))

    def _pay(self, t):
        w, d = self._place()
        c = self._random.randint(1, self._customers)
        amount = Decimal(self._random.randint(100, 500_000)) / 100
        customer = t.lock("customer", (w, d, c))
        t.update("customer", (w, d, c), {
            "c_balance": customer["c_balance"] - amount,
            "c_ytd_payment": customer["c_ytd_payment"] + amount,
            "c_payment_cnt": customer["c_payment_cnt"] + 1})
        t.add("district", (w, d), "d_ytd", amount)
        t.add("warehouse", w, "w_ytd", amount)
        t.insert("history", (c, d, w, d, w, self._now, amount, "a payment"))

    def _deliver(self, t):
        w = self._random.randint(1, self._warehouses)
        carrier = self._random.randint(1, 10)
        for d in range(1, DISTRICTS + 1):
            for oldest in t.rows("new_order", "primary", prefix=(w, d), limit=1):
                self._deliver_order(t, (w, d, oldest["no_o_id"]), carrier)

    def _deliver_order(self, t, order, carrier):
        t.delete("new_order", order)
        about = t.find("orders", order)
        t.update("orders", order, {"o_carrier_id": carrier})
        total = Decimal(0)
        for line in range(1, about["o_ol_cnt"] + 1):
            total += t.find("order_line", (*order, line))["ol_amount"]
            t.update("order_line", (*order, line), {"ol_delivery_d": self._now})
        customer = (*order[:2], about["o_c_id"])
        now = t.lock("customer", customer)
        t.update("customer", customer, {"c_balance": now["c_balance"] + total,
                                        "c_delivery_cnt": now["c_delivery_cnt"] + 1})
