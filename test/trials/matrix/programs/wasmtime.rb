# frozen_string_literal: true

require "wasmtime"

# What the module calls of the host waits.
MODULE = <<~WAT
  (module
    (import "host" "double" (func $double (param i32) (result i32)))
    (func (export "run") (param i32) (result i32)
      local.get 0 call $double call $double
      local.get 0 i32.eqz if unreachable end))
WAT
engine = Wasmtime::Engine.new
compiled = Wasmtime::Module.new(engine, MODULE)

def run(engine, compiled, number)
  store = Wasmtime::Store.new(engine)
  linker = Wasmtime::Linker.new(engine)
  linker.func_new("host", "double", [:i32], [:i32]) { |_, value| sleep(0.001 * (number + 1)) && (value * 2) }
  linker.instantiate(store, compiled).invoke("run", number)
rescue Wasmtime::Trap => e
  e.code
end
got = clients { |number| 5.times.map { run(engine, compiled, number) }.uniq }
expected = Array.new(CLIENTS) { |number| [number.zero? ? :unreachable_code_reached : number * 4] }
proves("8 modules call functions of the host that wait, each gets its own answer or trap", got == expected)
