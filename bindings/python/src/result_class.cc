#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <cerrno>
#include <memory>

#include "bindings/python/src/results.h"

namespace flugs::python {

namespace {

using nb::literals::operator""_a;

constexpr const char* kCapsule = "arrow_array_stream";

/// What an ArrowArrayStream of ours holds.
struct Holder {
  std::shared_ptr<Stream> stream;
};

Stream& stream_of(ArrowArrayStream* arrow) noexcept {
  return *static_cast<Holder*>(arrow->private_data)->stream;
}

void release_stream(ArrowArrayStream* arrow) {
  delete static_cast<Holder*>(arrow->private_data);
  arrow->private_data = nullptr;
  arrow->release = nullptr;
}

void destroy_capsule(PyObject* capsule) {
  auto* const arrow = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, kCapsule));
  if (arrow == nullptr) return;
  if (arrow->release != nullptr) arrow->release(arrow);
  delete arrow;
}

/// A batch for a library that reads Arrow, which takes it once.
struct PyBatch {
  nb::object capsules;
};

/// An iterator of batches.
struct PyBatches {
  std::shared_ptr<Stream> stream;
};

void bind_batches(nb::module_& module) {
  nb::class_<PyBatch>(module, "Batch", "Some rows of a result, for a library that reads Arrow.")
      .def(
          "__arrow_c_array__",
          [](PyBatch& self, nb::handle) {
            if (!self.capsules.is_valid())
              throw nb::value_error("the rows of this batch have been taken already");
            return std::move(self.capsules);
          },
          nb::lock_self(), "requested_schema"_a = nb::none(),
          nb::sig("def __arrow_c_array__(self, requested_schema: object | None = None)"
                  " -> tuple[object, object]"));
  nb::class_<PyBatches>(module, "Batches", "The batches of a result.")
      .def(
          "__iter__", [](nb::object self) { return self; },
          nb::sig("def __iter__(self) -> Iterator[Batch]"))
      .def(
          "__next__",
          [](PyBatches& self) {
            nb::object capsules = self.stream->next_batch();
            if (capsules.is_none()) throw nb::stop_iteration();
            return PyBatch{std::move(capsules)};
          },
          nb::sig("def __next__(self) -> Batch"));
}

void bind_ends(nb::class_<Stream>& result) {
  result
      .def(
          "__arrow_c_stream__",
          [](Stream& self, nb::handle) { return arrow_capsule(self.shared_from_this()); },
          "requested_schema"_a = nb::none(),
          nb::sig("def __arrow_c_stream__(self, requested_schema: object | None = None) -> object"),
          "The rows for any library that reads Arrow.")
      .def(
          "batches", [](Stream& self) { return PyBatches{self.shared_from_this()}; },
          nb::sig("def batches(self) -> Iterator[Batch]"),
          "The rows in batches of up to 65,536, each with `__arrow_c_array__`. A batch whose "
          "rows were taken one by one is taken to its end first.")
      .def("explain", &Stream::explain,
           "The plan, with figures of what has been done so far, also after the last row. Empty if "
           "the result was closed, or its transaction ended, before that.")
      .def("close", &Stream::close, "Gives up the rows that are left.")
      .def(
          "__enter__", [](nb::object self) { return self; },
          nb::sig("def __enter__(self) -> Result"))
      .def(
          "__exit__",
          [](Stream& self, nb::handle, nb::handle, nb::handle) {
            self.close();
            return false;
          },
          nb::arg("type").none(), nb::arg("value").none(), nb::arg("traceback").none(),
          nb::sig("def __exit__(self, type: object, value: object, traceback: object) -> bool"));
}

}  // namespace

nb::object arrow_capsule(const std::shared_ptr<Stream>& stream) {
  stream->give_to_arrow();
  auto arrow = std::make_unique<ArrowArrayStream>();
  arrow->get_schema = [](ArrowArrayStream* self, ArrowSchema* out) {
    return stream_of(self).get_schema(*out);
  };
  arrow->get_next = [](ArrowArrayStream* self, ArrowArray* out) {
    // A handler of a signal may release the stream meanwhile.
    const std::shared_ptr<Stream> kept = stream_of(self).shared_from_this();
    return kept->get_next(*out);
  };
  arrow->get_last_error = [](ArrowArrayStream* self) { return stream_of(self).last_error(); };
  arrow->release = &release_stream;
  auto holder = std::make_unique<Holder>(Holder{stream});
  const nb::object capsule = nb::steal(PyCapsule_New(arrow.get(), kCapsule, &destroy_capsule));
  if (!capsule.is_valid()) throw nb::python_error();
  arrow.release()->private_data = holder.release();
  return capsule;
}

void bind_results(nb::module_& module) {
  bind_batches(module);
  nb::class_<Stream> result(
      module, "Result",
      "The rows of a query, which are given once: as an iterator of tuples, or to "
      "a library that reads Arrow.");
  bind_conversions(result);
  result
      .def_prop_ro(
          "columns",
          [](const Stream& self) {
            nb::list names;
            for (const query::ResultColumn& column : self.columns())
              names.append(nb::str(column.name.c_str()));
            return names;
          },
          nb::sig("def columns(self) -> list[str]"), "The names of the columns.")
      .def(
          "fetchall", [](Stream& self) { return fetch(self, -1); },
          nb::sig("def fetchall(self) -> list[tuple[Any, ...]]"), "All rows that are left.")
      .def(
          "fetchmany", [](Stream& self, std::int64_t size) { return fetch(self, size); },
          "size"_a = 1, nb::sig("def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]"),
          "The next rows, at most `size`.")
      .def(
          "fetchone",
          [](Stream& self) -> nb::object {
            nb::object row = self.next_row();
            return row.is_valid() ? row : nb::none();
          },
          nb::sig("def fetchone(self) -> tuple[Any, ...] | None"), "The next row, or None.")
      .def(
          "__iter__", [](nb::object self) { return self; },
          nb::sig("def __iter__(self) -> Iterator[tuple[Any, ...]]"))
      .def(
          "__next__",
          [](Stream& self) {
            nb::object row = self.next_row();
            if (!row.is_valid()) throw nb::stop_iteration();
            return row;
          },
          nb::sig("def __next__(self) -> tuple[Any, ...]"));
  bind_ends(result);
}

}  // namespace flugs::python
