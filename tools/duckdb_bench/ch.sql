-- The 22 queries of CH-benCHmark. {since} and {until} bound the dates: the benchmark's own bounds,
-- 2007 to 2012 or 2020, select nothing of a database that is loaded today.
-- Before each: its name, what it asks, and the columns of the result by which it is sorted.
-- The supplier of a row of STOCK and the nation of a customer are computed.

-- Q1: delivered lines by their number; sorted 1
select ol_number, sum(ol_quantity), sum(ol_amount), avg(ol_quantity), avg(ol_amount), count(*)
from order_line
where ol_delivery_d > {since}
group by ol_number
order by ol_number;

-- Q2: European suppliers that have least of an item; sorted 3 2 4
select su_suppkey, su_name, n_name, i_id, i_name, su_address, su_phone, su_comment
from item, supplier, stock, nation, region,
     (select s_i_id as m_i_id, min(s_quantity) as m_s_quantity
      from stock, supplier, nation, region
      where (s_w_id * s_i_id) % 10000 = su_suppkey and su_nationkey = n_nationkey
        and n_regionkey = r_regionkey and r_name like 'Europ%'
      group by s_i_id) as least
where i_id = s_i_id and (s_w_id * s_i_id) % 10000 = su_suppkey and su_nationkey = n_nationkey
  and n_regionkey = r_regionkey and i_data like '%b' and r_name like 'Europ%'
  and i_id = m_i_id and s_quantity = m_s_quantity
order by n_name, su_name, i_id;

-- Q3: open orders of states with A, by revenue; sorted 4 5
select ol_o_id, ol_w_id, ol_d_id, sum(ol_amount) as revenue, o_entry_d
from customer, new_order, orders, order_line
where c_state like 'A%' and c_id = o_c_id and c_w_id = o_w_id and c_d_id = o_d_id
  and no_w_id = o_w_id and no_d_id = o_d_id and no_o_id = o_id
  and ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id and o_entry_d > {since}
group by ol_o_id, ol_w_id, ol_d_id, o_entry_d
order by revenue desc, o_entry_d;

-- Q4: delivered orders by number of lines; sorted 1
select o_ol_cnt, count(*)
from orders
where o_entry_d >= {since} and o_entry_d < {until}
  and exists (select * from order_line
              where o_id = ol_o_id and o_w_id = ol_w_id and o_d_id = ol_d_id
                and ol_delivery_d >= o_entry_d)
group by o_ol_cnt
order by o_ol_cnt;

-- Q5: revenue of European suppliers in the customer's nation; sorted 2
select n_name, sum(ol_amount) as revenue
from customer, orders, order_line, stock, supplier, nation, region
where c_id = o_c_id and c_w_id = o_w_id and c_d_id = o_d_id
  and ol_o_id = o_id and ol_w_id = o_w_id and ol_d_id = o_d_id
  and ol_w_id = s_w_id and ol_i_id = s_i_id and (s_w_id * s_i_id) % 10000 = su_suppkey
  and ascii(substring(c_state, 1, 1)) = su_nationkey and su_nationkey = n_nationkey
  and n_regionkey = r_regionkey and r_name = 'Europe' and o_entry_d >= {since}
group by n_name
order by revenue desc;

-- Q6: revenue of delivered lines; sorted
select sum(ol_amount)
from order_line
where ol_delivery_d >= {since} and ol_delivery_d < {until} and ol_quantity between 1 and 100000;

-- Q7: trade between two nations by year; sorted 1 2 3
select su_nationkey, substring(c_state, 1, 1) as cust_nation, year(o_entry_d) as l_year,
       sum(ol_amount)
from supplier, stock, order_line, orders, customer, nation n1, nation n2
where ol_supply_w_id = s_w_id and ol_i_id = s_i_id and (s_w_id * s_i_id) % 10000 = su_suppkey
  and ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id
  and c_id = o_c_id and c_w_id = o_w_id and c_d_id = o_d_id
  and su_nationkey = n1.n_nationkey and ascii(substring(c_state, 1, 1)) = n2.n_nationkey
  and ((n1.n_name = 'Germany' and n2.n_name = 'Cambodia')
       or (n1.n_name = 'Cambodia' and n2.n_name = 'Germany'))
  and ol_delivery_d between {since} and {until}
group by su_nationkey, substring(c_state, 1, 1), year(o_entry_d)
order by su_nationkey, cust_nation, l_year;

-- Q8: German suppliers' share of a market by year; sorted 1
select year(o_entry_d) as l_year,
       sum(case when n2.n_name = 'Germany' then ol_amount else 0 end) / sum(ol_amount)
from item, supplier, stock, order_line, orders, customer, nation n1, nation n2, region
where i_id = s_i_id and ol_i_id = s_i_id and ol_supply_w_id = s_w_id
  and (s_w_id * s_i_id) % 10000 = su_suppkey
  and ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id
  and c_id = o_c_id and c_w_id = o_w_id and c_d_id = o_d_id
  and n1.n_nationkey = ascii(substring(c_state, 1, 1)) and n1.n_regionkey = r_regionkey
  and ol_i_id < 1000 and r_name = 'Europe' and su_nationkey = n2.n_nationkey
  and o_entry_d between {since} and {until} and i_data like '%b' and i_id = ol_i_id
group by year(o_entry_d)
order by l_year;

-- Q9: revenue of items with BB by nation and year; sorted 1 2
select n_name, year(o_entry_d) as l_year, sum(ol_amount)
from item, stock, supplier, order_line, orders, nation
where ol_i_id = s_i_id and ol_supply_w_id = s_w_id and (s_w_id * s_i_id) % 10000 = su_suppkey
  and ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id and ol_i_id = i_id
  and su_nationkey = n_nationkey and i_data like '%BB'
group by n_name, year(o_entry_d)
order by n_name, l_year desc;

-- Q10: customers by revenue of their orders; sorted 3
select c_id, c_last, sum(ol_amount) as revenue, c_city, c_phone, n_name
from customer, orders, order_line, nation
where c_id = o_c_id and c_w_id = o_w_id and c_d_id = o_d_id
  and ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id
  and o_entry_d >= {since} and o_entry_d <= ol_delivery_d
  and n_nationkey = ascii(substring(c_state, 1, 1))
group by c_id, c_last, c_city, c_phone, n_name
order by revenue desc;

-- Q11: items that German suppliers sold most often; sorted 2
select s_i_id, sum(s_order_cnt) as ordercount
from stock, supplier, nation
where (s_w_id * s_i_id) % 10000 = su_suppkey and su_nationkey = n_nationkey
  and n_name = 'Germany'
group by s_i_id
having sum(s_order_cnt) > (select sum(s_order_cnt) * 0.005
                           from stock, supplier, nation
                           where (s_w_id * s_i_id) % 10000 = su_suppkey
                             and su_nationkey = n_nationkey and n_name = 'Germany')
order by ordercount desc;

-- Q12: lines of urgent carriers and others; sorted 1
select o_ol_cnt, sum(case when o_carrier_id = 1 or o_carrier_id = 2 then 1 else 0 end),
       sum(case when o_carrier_id <> 1 and o_carrier_id <> 2 then 1 else 0 end)
from orders, order_line
where ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id
  and o_entry_d <= ol_delivery_d and ol_delivery_d < {until}
group by o_ol_cnt
order by o_ol_cnt;

-- Q13: customers by number of orders; sorted 2 1
select c_count, count(*) as custdist
from (select c_id, count(o_id) as c_count
      from customer left outer join orders
        on c_w_id = o_w_id and c_d_id = o_d_id and c_id = o_c_id and o_carrier_id > 8
      group by c_id) as c_orders
group by c_count
order by custdist desc, c_count desc;

-- Q14: share of promoted items; sorted
select 100.00 * sum(case when i_data like 'PR%' then ol_amount else 0 end) / (1 + sum(ol_amount))
from order_line, item
where ol_i_id = i_id and ol_delivery_d >= {since} and ol_delivery_d < {until};

-- Q15: the supplier with most revenue; sorted 1
with revenue as (select (s_w_id * s_i_id) % 10000 as supplier_no, sum(ol_amount) as total_revenue
                 from order_line, stock
                 where ol_i_id = s_i_id and ol_supply_w_id = s_w_id and ol_delivery_d >= {since}
                 group by (s_w_id * s_i_id) % 10000)
select su_suppkey, su_name, su_address, su_phone, total_revenue
from supplier, revenue
where su_suppkey = supplier_no
  and total_revenue = (select max(total_revenue) from revenue)
order by su_suppkey;

-- Q16: suppliers of items by name, kind and price; sorted 4
select i_name, substring(i_data, 1, 3) as brand, i_price,
       count(distinct (s_w_id * s_i_id) % 10000) as supplier_cnt
from stock, item
where i_id = s_i_id and i_data not like 'zz%'
  and (s_w_id * s_i_id) % 10000 not in (select su_suppkey from supplier
                                        where su_comment like '%bad%')
group by i_name, substring(i_data, 1, 3), i_price
order by supplier_cnt desc;

-- Q17: revenue of unusually small lines; sorted
select sum(ol_amount) / 2.0
from order_line, (select i_id, avg(ol_quantity) as usual
                  from item, order_line
                  where i_data like '%b' and ol_i_id = i_id
                  group by i_id) as t
where ol_i_id = t.i_id and ol_quantity < t.usual;

-- Q18: large orders and their customers; sorted 6 4
select c_last, c_id, o_id, o_entry_d, o_ol_cnt, sum(ol_amount) as revenue
from customer, orders, order_line
where c_id = o_c_id and c_w_id = o_w_id and c_d_id = o_d_id
  and ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id
group by o_id, o_w_id, o_d_id, c_id, c_last, o_entry_d, o_ol_cnt
having sum(ol_amount) > 200
order by revenue desc, o_entry_d;

-- Q19: revenue of certain items; sorted
select sum(ol_amount)
from order_line, item
where (ol_i_id = i_id and i_data like '%a' and ol_quantity between 1 and 10
       and i_price between 1 and 400000 and ol_w_id in (1, 2, 3))
   or (ol_i_id = i_id and i_data like '%b' and ol_quantity between 1 and 10
       and i_price between 1 and 400000 and ol_w_id in (1, 2, 4))
   or (ol_i_id = i_id and i_data like '%c' and ol_quantity between 1 and 10
       and i_price between 1 and 400000 and ol_w_id in (1, 3, 5));

-- Q20: German suppliers with much of an item in stock; sorted 1
select su_name, su_address
from supplier, nation
where su_suppkey in (select (s_i_id * s_w_id) % 10000
                     from stock, order_line
                     where s_i_id in (select i_id from item where i_data like 'co%')
                       and ol_i_id = s_i_id and ol_delivery_d > timestamp '2010-05-23 12:00:00'
                     group by s_i_id, s_w_id, s_quantity
                     having 2 * s_quantity > sum(ol_quantity))
  and su_nationkey = n_nationkey and n_name = 'Germany'
order by su_name;

-- Q21: German suppliers who kept orders waiting; sorted 2 1
select su_name, count(*) as numwait
from supplier, order_line l1, orders, stock, nation
where ol_o_id = o_id and ol_w_id = o_w_id and ol_d_id = o_d_id and ol_w_id = s_w_id
  and ol_i_id = s_i_id and (s_w_id * s_i_id) % 10000 = su_suppkey
  and l1.ol_delivery_d > o_entry_d
  and not exists (select * from order_line l2
                  where l2.ol_o_id = l1.ol_o_id and l2.ol_w_id = l1.ol_w_id
                    and l2.ol_d_id = l1.ol_d_id and l2.ol_delivery_d > l1.ol_delivery_d)
  and su_nationkey = n_nationkey and n_name = 'Germany'
group by su_name
order by numwait desc, su_name;

-- Q22: rich customers without orders; sorted 1
select substring(c_state, 1, 1) as country, count(*), sum(c_balance)
from customer
where substring(c_phone, 1, 1) in ('1', '2', '3', '4', '5', '6', '7')
  and c_balance > (select avg(c_balance) from customer
                   where c_balance > 0.00
                     and substring(c_phone, 1, 1) in ('1', '2', '3', '4', '5', '6', '7'))
  and not exists (select * from orders
                  where o_c_id = c_id and o_w_id = c_w_id and o_d_id = c_d_id)
group by substring(c_state, 1, 1)
order by country;
