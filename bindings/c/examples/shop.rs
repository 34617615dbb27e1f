// flugs from Rust with the C ABI alone: no crate, declarations by hand.
//   rustc shop.rs -L LIBRARY_FOLDER && LD_LIBRARY_PATH=LIBRARY_FOLDER ./shop POOL
use std::ffi::{CStr, CString};
use std::os::raw::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};

macro_rules! c { // a constant text as C has it
    ($text:literal) => { concat!($text, "\0").as_ptr().cast::<c_char>() };
}

#[repr(C)]
#[derive(Clone, Copy)]
union Content { number: i64, real: f64, data: *const c_char }
#[repr(C)]
#[derive(Clone, Copy)]
struct Value { kind: i32, scale: i32, content: Content, size: u64 }
const INT64: i32 = 3;
const STRING: i32 = 8;
const GREATER: i32 = 5;

#[repr(C)]
struct ArrowArray {
    length: i64, null_count: i64, offset: i64, n_buffers: i64, n_children: i64,
    buffers: *const *const c_void, children: *mut *mut ArrowArray, dictionary: *mut ArrowArray,
    release: Option<extern "C" fn(*mut ArrowArray)>, private_data: *mut c_void,
}
#[repr(C)]
struct ArrowArrayStream {
    get_schema: Option<extern "C" fn(*mut ArrowArrayStream, *mut c_void) -> c_int>,
    get_next: Option<extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    get_last_error: Option<extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    release: Option<extern "C" fn(*mut ArrowArrayStream)>, private_data: *mut c_void,
}

type Handle = *mut c_void; // to any of the opaque structs
type Names = *const *const c_char;

#[link(name = "flugs_c")]
extern "C" {
    fn flugs_error_message(error: Handle) -> *const c_char;
    fn flugs_error_free(error: Handle);
    fn flugs_database_open(path: *const c_char, options: Handle, out: *mut Handle) -> Handle;
    fn flugs_database_free(database: Handle);
    fn flugs_schema_create(table: *const c_char, out: *mut Handle) -> Handle;
    fn flugs_schema_column(schema: Handle, name: *const c_char, kind: i32) -> Handle;
    fn flugs_schema_primary_key(schema: Handle, columns: Names, count: usize) -> Handle;
    fn flugs_schema_free(schema: Handle);
    fn flugs_table_ensure(database: Handle, schema: Handle, out: *mut u32) -> Handle;
    fn flugs_transaction_begin(db: Handle, access: i32, level: i32, out: *mut Handle) -> Handle;
    fn flugs_transaction_commit(transaction: Handle, options: Handle) -> Handle;
    fn flugs_transaction_free(transaction: Handle);
    fn flugs_insert(t: Handle, table: u32, row: *const Value, n: usize, out: *mut i64) -> Handle;
    fn flugs_lookup_create(db: Handle, table: u32, key: *const c_char, columns: Names, n: usize,
                           out: *mut Handle) -> Handle;
    fn flugs_lookup_free(lookup: Handle);
    fn flugs_find(t: Handle, lookup: Handle, key: *const Value, key_count: usize, out: *mut Value,
                  n: usize) -> Handle;
    fn flugs_query_table(table: *const c_char, out: *mut Handle) -> Handle;
    fn flugs_query_where(query: Handle, condition: Handle) -> Handle;
    fn flugs_query_stream(query: Handle, t: Handle, options: Handle,
                          out: *mut ArrowArrayStream) -> Handle;
    fn flugs_query_free(query: Handle);
    fn flugs_expr_column(name: *const c_char) -> Handle;
    fn flugs_expr_constant(value: *const Value) -> Handle;
    fn flugs_expr_binary(op: i32, left: Handle, right: Handle) -> Handle;
}

type Outcome = Result<(), String>;

fn check(error: Handle) -> Outcome {
    if error.is_null() { return Ok(()); }
    let message = unsafe { CStr::from_ptr(flugs_error_message(error)) }.to_string_lossy().into();
    unsafe { flugs_error_free(error) };
    Err(message)
}

fn int64(number: i64) -> Value {
    Value { kind: INT64, scale: 0, content: Content { number }, size: 0 }
}
fn text(of: &str) -> Value {
    let content = Content { data: of.as_ptr().cast() };
    Value { kind: STRING, scale: 0, content, size: of.len() as u64 }
}

unsafe fn scan(transaction: Handle) -> Result<(i64, i64), String> {
    let mut query = null_mut();
    check(flugs_query_table(c!("item"), &mut query))?;
    let limit = int64(500);
    let condition = flugs_expr_binary(GREATER, flugs_expr_column(c!("id")),
                                      flugs_expr_constant(&limit)); // taken over
    check(flugs_query_where(query, condition))?;
    let mut stream: ArrowArrayStream = std::mem::zeroed();
    check(flugs_query_stream(query, transaction, null_mut(), &mut stream))?;
    let (mut rows, mut sum) = (0, 0);
    loop {
        let mut batch: ArrowArray = std::mem::zeroed();
        if stream.get_next.unwrap()(&mut stream, &mut batch) != 0 { return Err("get_next".into()); }
        let release = match batch.release { Some(release) => release, None => break };
        let id = &**batch.children;
        let numbers = (*id.buffers.add(1)).cast::<i64>();
        let ids = std::slice::from_raw_parts(numbers, id.length as usize);
        rows += batch.length;
        sum += ids.iter().sum::<i64>();
        release(&mut batch);
    }
    stream.release.unwrap()(&mut stream);
    flugs_query_free(query);
    Ok((rows, sum))
}

unsafe fn run(path: &str) -> Outcome {
    let path = CString::new(path).map_err(|e| e.to_string())?;
    let (mut database, mut schema, mut table) = (null_mut(), null_mut(), 0);
    check(flugs_database_open(path.as_ptr(), null_mut(), &mut database))?;
    check(flugs_schema_create(c!("item"), &mut schema))?;
    check(flugs_schema_column(schema, c!("id"), INT64))?;
    check(flugs_schema_column(schema, c!("name"), STRING))?;
    check(flugs_schema_primary_key(schema, [c!("id")].as_ptr(), 1))?;
    check(flugs_table_ensure(database, schema, &mut table))?;
    flugs_schema_free(schema);

    let mut transaction = null_mut();
    check(flugs_transaction_begin(database, 0, 0, &mut transaction))?;
    for id in 1..=1000 {
        let name = format!("item {id}");
        check(flugs_insert(transaction, table, [int64(id), text(&name)].as_ptr(), 2, null_mut()))?;
    }
    check(flugs_transaction_commit(transaction, null_mut()))?;
    flugs_transaction_free(transaction);

    check(flugs_transaction_begin(database, 1, 0, &mut transaction))?;
    let (mut lookup, mut found) = (null_mut(), int64(0));
    let columns = [c!("name")];
    check(flugs_lookup_create(database, table, null(), columns.as_ptr(), 1, &mut lookup))?;
    check(flugs_find(transaction, lookup, &int64(42), 1, &mut found, 1))?;
    let bytes = std::slice::from_raw_parts(found.content.data.cast::<u8>(), found.size as usize);
    println!("found {}", String::from_utf8_lossy(bytes));
    let missing = check(flugs_find(transaction, lookup, &int64(-1), 1, &mut found, 1));
    println!("missing: {}", missing.unwrap_err());
    let (rows, sum) = scan(transaction)?;
    println!("scanned {rows} rows, sum {sum}");
    flugs_lookup_free(lookup);
    flugs_database_free(database); // ends the transaction
    flugs_transaction_free(transaction);
    Ok(())
}

fn main() {
    let path = std::env::args().nth(1).expect("shop POOL");
    if let Err(message) = unsafe { run(&path) } {
        eprintln!("{message}");
        std::process::exit(1);
    }
}
