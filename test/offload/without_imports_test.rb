# frozen_string_literal: true

require_relative "support/offloaded"
require "support/served_process"
require "tmpdir"

# Where the import tables of libraries can't be changed, or must not be (HEDDLE_OFFLOAD_IMPORTS=off), everything else
# works: what Ruby itself hands to the scheduler, blocks that are offloaded by hand, preemption and the report.
class OffloadWithoutImportsTest < Minitest::Test
  include Offloaded

  OFF = { "HEDDLE_OFFLOAD_IMPORTS" => "off" }.freeze

  def without_imports(program, *arguments) = offloading(program, *arguments, env: OFF)

  def test_no_library_is_intercepted_and_the_status_says_why
    output = without_imports(<<~RUBY)
      Heddle.run { p NativeCalls.same_thread? }
      p Heddle::Offload.libraries, Heddle::Offload.libc_libraries
      puts Heddle::Protection.summary
    RUBY

    assert_match(/\Atrue\n\[\]\n\[\]\n.*\(only .*Heddle.offload { }.*HEDDLE_OFFLOAD_IMPORTS=off\)/, output)
    assert_equal RUBY_VERSION >= "3.4", output.include?("operations that Ruby passes to the fiber scheduler")
  end

  # The native call waits for the second one, which another fiber of the same loop makes.
  def test_blocks_are_offloaded_by_hand
    output = without_imports(<<~RUBY)
      values = Heddle.run { Heddle.map(1..3) { Heddle.offload { NativeCalls.meet(3) } } }
      p values, Heddle.run { Heddle.offload { NativeCalls.same_thread? } }
    RUBY

    assert_equal "[:met, :met, :met]\ntrue\n", output
  end

  def test_code_that_computes_is_preempted
    output = without_imports(<<~RUBY)
      Heddle.enable :preempt
      Heddle.run do
        told = false
        hog = Heddle.async { nil until told }
        Heddle.async { told = true }
        hog.wait
      end
      puts "preempted"
    RUBY

    assert_equal "preempted\n", output
  end

  if RUBY_VERSION >= "3.4"
    def test_calls_that_ruby_passes_to_the_scheduler_are_offloaded
      Dir.mktmpdir do |folder|
        output = without_imports(<<~RUBY, File.join(folder, "fifo"))
          require "zlib"
          File.mkfifo(ARGV[0])
          text = Random.new(1).bytes(1_000_000)
          Heddle.run do
            heard = Heddle.async { File.read(ARGV[0]) }
            File.write(ARGV[0], "through")
            p heard.value, Zlib::Inflate.inflate(Zlib::Deflate.deflate(text)) == text
            p Fiber.scheduler.thread_pool.size.positive?, Heddle::Offload.threads[:calls].positive?
          end
        RUBY

        # Ruby 3.4 passes a Proc, which needs Ruby's lock; Ruby >= 4.0 an operation, which an offload thread runs.
        assert_equal "\"through\"\ntrue\n#{RUBY_VERSION < "4.0"}\n#{RUBY_VERSION >= "4.0"}\n", output
      end
    end
  end

  def test_a_server_says_so_and_serves
    skip "offload is off by default here" if Heddle::Platform.untested
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "config.ru"), "run ->(_) { [200, {}, [\"fine\"]] }\n")
      command = [*ServedProcess::HEDDLE, "serve", File.join(folder, "config.ru"), "-p", "0", "--no-access-log"]
      served = ServedProcess.new(command, environment: OFF)
      begin
        assert_equal "fine", served.get("/").body
        assert_match(/HEDDLE_OFFLOAD_IMPORTS=off/, served.output)
        refute_match(/has no effect/, served.output)
      ensure
        served.stop
      end
    end
  end
end
