# frozen_string_literal: true

require "test_helper"
require "support/native_library"
require "support/scheduled"
require "heddle"
require "io/console"
require "monitor"
require "socket"
require "stringio"
require "tmpdir"

# Ruby code that waits while an extension's function waits for it is reported with library and line, once for each
# place.
class CallbackReportTest < Minitest::Test
  include Scheduled

  CALLBACKS = NativeLibrary.new(File.expand_path("support/callbacks.c", __dir__))
  require CALLBACKS.path

  def setup
    Heddle.disable :callback_report
    Heddle.enable :callback_report
  end

  def teardown = Heddle.disable(:callback_report)

  # What is told of a callback that is called with a queue into which another fiber puts something.
  def told(tell: ->(_) {}, &) = Heddle::Protection.reporting_to(tell) { noted(&) }

  def noted
    scheduled do
      queue = Thread::Queue.new
      2.times { |number| Fiber.schedule { (sleep 0.001) && queue << number } }
      yield queue
    end
    Heddle::CallbackReport.recent
  end

  def test_a_wait_in_a_callback_is_reported_with_library_method_and_line
    line = nil
    found = told { |queue| CallingBack.call(-> { (line = __LINE__) && queue.pop }) }

    assert_equal [["callbacks.so", "#{__FILE__}:#{line}"]], found.map { |one| [File.basename(one.library), one.place] }
    assert_includes found.first.method_name, "call"
    assert_match(/\A\S*call\S* called \S*callbacks\.so, which called back the Ruby code at .*_test\.rb:#{line},/,
                 found.first.to_s)
    assert_includes found.first.advice, 'reentrant += ["callbacks"]'
  end

  # Places are told once, waits are counted.
  def test_waits_are_counted_by_library
    before = Heddle::CallbackReport.status[:by_library]["callbacks.so"].to_i
    told { |_| 2.times { CallingBack.call(-> { sleep 0.001 }) } }
    status = Heddle::CallbackReport.status

    assert_operator status[:by_library]["callbacks.so"], :>=, before + 2
    assert_equal status[:waits], status[:by_library].values.sum
  end

  SWITCHES = {
    "mutex" => lambda { |queue|
      mutex = Mutex.new
      Fiber.schedule { mutex.synchronize { sleep 0.001 } }
      CallingBack.yield { mutex.synchronize { queue } }
    },
    "sleep" => ->(_) { CallingBack.protect(-> { sleep 0.001 }) },
    "task" => ->(queue) { CallingBack.call(-> { Fiber.schedule { queue } }) },
    "within_rubys_own_methods" => ->(queue) { CallingBack.sort(-> { [1].each { [2].map { queue.pop } } }) },
    "within_monitor" => ->(queue) { CallingBack.call(-> { Monitor.new.synchronize { queue.pop } }) },
    "within_define_method" => lambda { |queue|
      object = Class.new { define_method(:call) { queue.pop } }.new
      CallingBack.call(object)
    },
    "child_process" => lambda { |_|
      reader, writer = IO.pipe
      child = spawn("cat", in: reader, out: File::NULL)
      Fiber.schedule { (sleep 0.001) && writer.close }
      CallingBack.call(-> { Process.wait(child) })
    },
    "join" => ->(_) { CallingBack.call(-> { Thread.new { sleep 0.005 }.join }) },
    "allocation" => lambda { |queue|
      library = Class.new(CallingBack::Allocated)
      library.const_set(:CALLED, -> { queue.pop })
      library.allocate
    }
  }.freeze

  SWITCHES.each do |name, call|
    define_method("test_#{name}_in_a_callback_is_told") do
      places = told { |queue| call.call(queue) }.map { |one| File.basename(one.place[/[^:]+/]) }

      assert_equal [File.basename(__FILE__)], places.uniq
    end
  end

  NOT_CALLBACKS = {
    "a_method_of_rubys_in_c" => ->(queue) { [1].each { [2, 1].sort { |_, _| queue.pop } } },
    "monitor" => ->(queue) { Monitor.new.synchronize { queue.pop } },
    "stringio" => ->(queue) { StringIO.new("line").each_line { queue.pop } },
    "an_extensions_own_sleep" => ->(_) { CallingBack.sleep },
    "an_extensions_own_wait_for_an_io" => lambda { |_|
      reader, writer = IO.pipe
      Fiber.schedule { (sleep 0.001) && writer << "x" }
      CallingBack.wait(reader)
    },
    "a_method_that_an_extension_calls" => ->(queue) { CallingBack.pop(queue) },
    "what_an_extension_was_called_for_before" => ->(queue) { CallingBack.call(-> { 1.to_s }) && queue.pop },
    "a_name_that_a_socket_needs" => ->(_) { Addrinfo.getaddrinfo("localhost", 80) },
    "a_socket_that_waits" => lambda { |_|
      server = TCPServer.new("127.0.0.1", 0)
      Fiber.schedule { TCPSocket.new("127.0.0.1", server.local_address.ip_port).close }
      server.accept.close
    },
    "heddles_own" => ->(_) { Heddle.timeout(LIMIT) { Heddle.async { sleep 0.001 }.wait } }
  }.freeze

  NOT_CALLBACKS.each do |name, call|
    define_method("test_#{name}_is_not_told") { assert_empty(told { |queue| call.call(queue) }) }
  end

  def test_each_line_is_reported_once
    lines = []
    told(tell: ->(one) { lines << one }) do
      2.times { CallingBack.call(-> { sleep 0.001 }) }
      CallingBack.call(-> { sleep 0.001 })
      until_true { lines.size >= 2 }
    end

    assert_equal 2, lines.size
    assert_operator Heddle::CallbackReport.status[:waits], :>=, 3
  end

  def test_nokogiri_is_named
    Gem::Specification.find_by_name("nokogiri")
    require "nokogiri"
    line = nil
    found = told do |queue|
      handler = Class.new(Nokogiri::XML::SAX::Document) do
        define_method(:start_element) { |*| (line = __LINE__) && queue.pop }
      end
      Nokogiri::XML::SAX::Parser.new(handler.new).parse("<a/>")
    end

    assert_equal [["nokogiri.so", "#{__FILE__}:#{line}"]], found.map { |one| [File.basename(one.library), one.place] }
    assert_includes found.first.to_s, "Nokogiri::XML::SAX"
    refute_includes found.first.advice, "reentrant"
  rescue Gem::MissingSpecError
    skip("needs the gem nokogiri: bin/setup")
  end

  def test_switched_off_nothing_is_noted
    Heddle.disable :callback_report
    before = Heddle::CallbackReport.status[:waits]

    assert_empty(told { |queue| CallingBack.call(-> { queue.pop }) })
    assert_equal before, Heddle::CallbackReport.status[:waits]
  end

  def test_libraries_listed_as_reentrant_are_not_reported
    Heddle::NativeLibraries.reentrant += ["callbacks"]

    assert_empty(told { |queue| CallingBack.call(-> { queue.pop }) })
  ensure
    Heddle::NativeLibraries.reentrant = Heddle::NativeLibraries::REENTRANT
  end

  # What bootsnap asks for what it is to store, and for what it has stored.
  Handler = Struct.new(:queue) do
    def input_to_storage(*) = queue.pop.to_s
    def storage_to_output(text, *) = text
  end

  # Applications that `rails new` has made load all their files through it.
  def test_bootsnap_is_not_reported
    require "bootsnap"
    require "bootsnap/bootsnap"
    found = Dir.mktmpdir do |folder|
      told { |queue| Bootsnap::CompileCache::Native.fetch(folder, "test", __FILE__, Handler.new(queue), nil) }
    end

    assert_empty found
  end
end
