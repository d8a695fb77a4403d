# frozen_string_literal: true

# Functions that act on the native thread that calls them.

require "fiddle"

libc = Fiddle.dlopen(nil)

Trials::Program.example("a call that concerns the calling thread is made by it") do |out|
  pause = Fiddle::Function.new(libc["usleep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT)
  Trials::Program.together(*Array.new(3) { -> { pause.call(5_000) } })
  identity = Fiddle::Function.new(libc["gettid"], [], Fiddle::TYPE_INT)
  out.puts Array.new(3) { identity.call == Process.pid }.inspect
end

Trials::Program.example("errno of a call stays with its fiber") do |out|
  close = Fiddle::Function.new(libc["close"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT)
  pause = Fiddle::Function.new(libc["usleep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT)
  failing = lambda do
    close.call(-1)
    Fiddle.last_error
  end
  out.puts Trials::Program.together(failing, -> { pause.call(1_000) }, failing).inspect
end

Trials::Program.example("a callback that computes") do |out|
  compare = Fiddle::Closure::BlockCaller.new(Fiddle::TYPE_INT, [Fiddle::TYPE_VOIDP] * 2) do |a, b|
    Trials::Program.compute(0.002)
    a[0, 4].unpack1("l") <=> b[0, 4].unpack1("l")
  end
  sort = Fiddle::Function.new(libc["qsort"], [Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T, Fiddle::TYPE_SIZE_T,
                                              Fiddle::TYPE_VOIDP], Fiddle::TYPE_VOID)
  sorted = lambda do |numbers|
    text = numbers.pack("l*")
    sort.call(text, numbers.size, 4, compare)
    text.unpack("l*")
  end
  out.puts Trials::Program.together(-> { sorted.call([3, 1, 2]) }, -> { sorted.call([9, 8, 7, 6]) }).inspect
end
