# frozen_string_literal: true

# ffi keeps a list of its calls by native thread; a callback's exception goes to the topmost one.

require "ffi"

# Functions of libc.
module Libc
  extend FFI::Library

  ffi_lib FFI::Library::LIBC
  callback :compare, %i[pointer pointer], :int
  attach_function :qsort, %i[pointer size_t size_t compare], :void
  attach_function :qsort_blocking, :qsort, %i[pointer size_t size_t compare], :void, blocking: true
  attach_function :usleep, [:uint], :int, blocking: true
end

sort = lambda do |function, &compare|
  numbers = FFI::MemoryPointer.new(:int, 6).write_array_of_int([3, 1, 2, 6, 5, 4])
  Libc.public_send(function, numbers, 6, 4, compare)
  numbers.read_array_of_int(6)
end

%i[qsort qsort_blocking].each do |function|
  Trials::Program.example("an exception of a callback comes to its own caller: #{function}") do |out|
    calls = [true, false].map do |raises|
      lambda do
        count = 0
        sort.call(function) do |a, b|
          Trials::Program.compute(0.005)
          raise "of the one that raises" if raises && (count += 1) >= 2

          a.read_int <=> b.read_int
        end
      rescue RuntimeError => e
        e.message
      end
    end
    out.puts Trials::Program.together(*calls).inspect
  end
end

Trials::Program.example("blocking calls that overlap, then a callback") do |out|
  Trials::Program.together(-> { Libc.usleep(10_000) }, -> { Libc.usleep(30_000) })
  out.puts sort.call(:qsort) { |a, b| a.read_int <=> b.read_int }.inspect
end

Trials::Program.example("callbacks that wait, one of which raises") do |out|
  calls = [false, true, false].map do |raises|
    lambda do
      sort.call(:qsort) do |a, b|
        sleep 0.001
        raise "of the one that raises" if raises

        a.read_int <=> b.read_int
      end
    rescue RuntimeError => e
      e.message
    end
  end
  out.puts Trials::Program.together(*calls).inspect
end
