# frozen_string_literal: true

# test: sanitize

require "test_helper"
require "support/native_library"
require "support/preempted"
require "io/console"
require "monitor"
require "pty"
require "stringio"

# Extensions keep things by their thread while they call back into Ruby, and all fibers of a loop share one: so a fiber
# is preempted in Ruby code only if no function of an extension waits for it.
class CallbacksTest < Minitest::Test
  include Preempted

  CALLBACKS = NativeLibrary.new(File.expand_path("support/callbacks.c", __dir__))
  require CALLBACKS.path

  # Is a fiber that computes in the block given to `call` left for another one meanwhile?
  # @param call [#call] called with a Proc, which it calls
  # @param within [Numeric] seconds that it computes for at most, or until it was left
  def left?(call, within: LIMIT / 2)
    turns = 0
    before = during = nil
    scheduled do
      done = false
      Fiber.schedule { (turns += 1) && sleep(0) until done }
      call.call(lambda do
        before ||= turns
        ended = now + within
        nil until turns > before || now > ended
        during = turns - before
        nil
      end)
    ensure
      done = true
    end
    during.positive?
  end

  # -- what stays interruptible ---------------------------------------------------------------------------------------

  # Ruby's own methods in C, at most one library's function of which waits; and what is listed as re-entrant.
  INTERRUPTIBLE = {
    "each" => ->(block) { [1].each { block.call } },
    "times" => ->(block) { 2.times { |i| block.call if i.zero? } },
    "map_of_a_hash" => ->(block) { { a: 1 }.map { block.call } },
    "inject" => ->(block) { [1, 2].inject { |_, _| block.call } },
    "loop" => ->(block) { loop { block.call || break } },
    "sort" => ->(block) { [2, 1].sort { |_, _| block.call || 0 } },
    "sort_by_an_objects_own_comparison" => lambda { |block|
      ordered = Class.new { define_method(:<=>) { |_| block.call || 0 } }
      [ordered.new, ordered.new].sort
    },
    "method_missing" => ->(block) { Class.new { define_method(:method_missing) { |*| block.call } }.new.missing },
    "instance_eval" => ->(block) { Object.new.instance_eval { block.call } },
    "send" => ->(block) { block.public_send(%i[call to_s].first) },
    "eval" => ->(block) { eval("block.call", binding, __FILE__, __LINE__) },
    "gsub" => ->(block) { "x".gsub("x") { block.call.to_s } },
    "ensure" => ->(block) { Mutex.new.synchronize { block.call } },
    "catch" => ->(block) { catch(:it) { block.call } },
    "monitor" => ->(block) { Monitor.new.synchronize { block.call } },
    "string_io" => ->(block) { StringIO.new("line").each_line { block.call } },
    "without_offload" => ->(block) { Heddle.without_offload { block.call } }
  }.freeze

  INTERRUPTIBLE.each do |name, call|
    define_method("test_#{name}_is_interrupted_in_its_block") { assert left?(call) }
  end

  def nest(depth, block) = depth.zero? ? block.call : Monitor.new.synchronize { [1].each { nest(depth - 1, block) } }

  # As deep as requests of Rails are: 400 frames.
  def test_a_block_deep_inside_of_monitors_is_interrupted
    assert left?(->(block) { nest(100, block) })
  end

  # What it has left on the stack is not taken for a call that is under way, however long the fiber computes there.
  def test_code_is_interrupted_where_an_extension_was_called_before
    used = -> { CallingBack.call(-> { 1.to_s }) }

    assert left?(->(block) { 20.times { |depth| nest(depth, used) } && nest(3, block) })
    assert left?(->(block) { used.call && [1].each { block.call } })
    assert left?(->(block) { used.call && loop { block.call || break } })
  end

  # -- what does not --------------------------------------------------------------------------------------------------

  KEPT_WHOLE = {
    "yields" => ->(block) { CallingBack.yield { block.call } },
    "calls_a_method" => ->(block) { CallingBack.call(block) },
    "yields_in_a_method_of_kernel" => ->(block) { yield_of_an_extension { block.call } },
    "is_io_console_and_yields_in_a_method_of_io" => lambda { |block|
      PTY.open { |_, terminal| terminal.raw { block.call } }
    },
    "is_called_back_by_libc" => ->(block) { CallingBack.sort(block) },
    "is_called_back_by_ruby" => ->(block) { CallingBack.protect(block) },
    "allocates" => lambda { |block|
      CallingBack::Allocated.const_set(:CALLED, block)
      CallingBack::Allocated.new
    },
    "waits_far_below" => lambda { |block|
      CallingBack.yield { 100.times.inject(block) { |inner, _| -> { [1].each { inner.call } } }.call }
    }
  }.freeze

  KEPT_WHOLE.each do |name, call|
    define_method("test_code_for_which_an_extension_waits_that_#{name}_is_not_interrupted") do
      refute left?(call, within: SLICE * 25)
    end
  end

  def test_a_fiber_that_such_code_resumes_is_not_interrupted_either
    refute left?(->(block) { CallingBack.yield { Fiber.new { block.call }.resume } }, within: SLICE * 25)
  end

  def test_a_fiber_is_preempted_again_after_a_callback
    assert left?(lambda { |block|
      CallingBack.yield { 1 }
      block.call
    })
  end

  # -- gems -----------------------------------------------------------------------------------------------------------

  # Runs a program in a process of its own: these crash where they fail.
  def program(gem, code)
    gem_path(gem)
    output, status = ruby(<<~RUBY, env: { "GEM_HOME" => ENV.fetch("GEM_HOME", nil) }, flags: %w[--enable=gems])
      require "#{gem}"
      require "heddle"
      def compute(seconds)
        ended = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
        nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ended
      end
      Heddle.enable :preempt, slice: 0.002
      #{code}
    RUBY
    assert_predicate status, :success?, output
    output
  end

  def gem_path(gem)
    Gem::Specification.find_by_name(gem)
  rescue Gem::MissingSpecError
    skip("needs the gem #{gem}: bin/setup")
  end

  # libxml2's error handler and what belongs to it are kept by thread, each parser puts back what it has found.
  def test_parsers_that_read_from_a_slow_object_restore_libxml2s_error_handler
    output = program("nokogiri", <<~'RUBY')
      class Slow
        def initialize(text, seconds) = (@text, @seconds = text.dup, seconds)
        def read(size) = (compute(@seconds); @text.empty? ? nil : @text.slice!(0, [size, 20].min))
        def close = nil
      end
      document = Nokogiri::XML("<a:r xmlns:a=\"relative/uri\"><a:b/></a:r>")
      message = -> { document.canonicalize && "none" rescue $!.message }
      before = message.call
      Heddle.run do
        [0.012, 0.05, 0.03].map { |seconds| Heddle.async {
          Nokogiri::XML::Reader(Slow.new("<r>#{"<a>x</a>" * 3}</r>", seconds)).each(&:name)
        } }.each(&:value)
      end
      10.times { GC.start; Array.new(50_000) { |i| "x#{i}" } }
      20.times { raise "was #{before}" unless message.call == before }
      puts "whole"
    RUBY

    assert_equal "whole", output.lines.last&.chomp # before that libxml2 says on $stderr what is wrong
  end

  def test_the_error_of_an_xpath_with_a_slow_function_is_raised
    output = program("nokogiri", <<~RUBY)
      class Functions; def slow(nodes) = (compute(0.03); true); end
      document, other = Array.new(2) { Nokogiri::XML("<r><a/></r>") }
      Heddle.run do
        task = Heddle.async do
          document.xpath("//a[slow(.)][no-such-function()]", Functions.new)
        rescue Nokogiri::XML::XPath::SyntaxError => e
          puts e.message[/no-such-function/]
        end
        5.times { other.xpath("//a"); sleep 0.001 }
        task.value
      end
    RUBY

    assert_equal "no-such-function\n", output
  end

  def test_an_exception_in_an_ffi_callback_is_raised_in_its_own_fiber
    output = program("ffi", <<~RUBY)
      module LibC
        extend FFI::Library
        ffi_lib FFI::Library::LIBC
        callback :comparison, %i[pointer pointer], :int
        attach_function :qsort, %i[pointer size_t size_t comparison], :void
      end
      Heddle.run do
        tasks = [true, false].map { |raises| Heddle.async do
          memory = FFI::MemoryPointer.new(:int, 6).write_array_of_int([3, 1, 2, 6, 5, 4])
          compared = 0
          LibC.qsort(memory, 6, 4, lambda do |a, b|
            compute(0.02)
            raise "the first" if raises && (compared += 1) >= 2
            a.read_int <=> b.read_int
          end)
          "sorted"
        rescue RuntimeError => e
          e.message
        end }
        tasks.each { |task| puts task.value }
      end
    RUBY

    assert_equal "the first\nsorted\n", output
  end
end
