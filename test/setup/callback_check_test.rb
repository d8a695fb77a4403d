# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/native_library"
require "tmpdir"

# The check of callbacks runs by default, and fails a test.
class CallbackCheckTest < Minitest::Test
  LIBRARY = NativeLibrary.new(File.expand_path("../preemption/support/callbacks.c", __dir__))
  PLANTED = <<~RUBY.freeze
    require "test_helper"
    require "support/scheduled"
    require "heddle"
    require #{LIBRARY.path.dump}
    class PlantedTest < Minitest::Test
      include Scheduled
      def test_waits_in_a_callback = scheduled { CallingBack.call(-> { sleep 0.001 }) }
      def test_waits_there_once_more = test_waits_in_a_callback
      def test_waits_elsewhere = scheduled { sleep 0.001 }
      def test_switches_the_report_off
        Heddle.disable
        scheduled { CallingBack.call(-> { sleep 0.001 }) }
      end
    end
  RUBY
  private_constant :PLANTED

  def planted(setting)
    Dir.mktmpdir do |folder|
      File.write(file = File.join(folder, "planted_test.rb"), PLANTED)
      output, = Open3.capture2e({ "HEDDLE_TEST_CALLBACKS" => setting, "HEDDLE_TEST_RESULT" => nil, "RUBYOPT" => nil },
                                RbConfig.ruby, "-Ilib", "-Itest", file, chdir: ROOT)
      output
    end
  end

  def test_a_test_whose_callback_waits_fails
    output = planted("error")

    assert_match(/^4 runs, .* 3 failures, 0 errors/, output)
    %w[waits_in_a_callback waits_there_once_more switches_the_report_off].each { |name| assert_includes output, name }
    assert_match(/callbacks\.so, which called .*planted_test\.rb:7, and this code let other fibers run/, output)
  end

  def test_the_callback_check_is_on_by_default
    assert_match(/^4 runs, .* 3 failures, 0 errors/, planted(nil))
    assert_match(/^4 runs, .* 0 failures, 0 errors/, planted("off"))
    assert_raises(ArgumentError) { CallbackCheck.wanted?("eror") }
  end

  # An exemption that names no test would excuse nothing.
  def test_every_exempt_test_exists
    CallbackCheck::EXEMPT.each_key do |name|
      type, method = name.split("#")
      sources = Dir[File.join(ROOT, "test/**/*_test.rb")].select { |path| File.read(path).match?(/^class #{type} </) }

      assert_equal 1, sources.size, name
      assert_includes File.read(sources.first), "def #{method}\n", name if method
    end
  end
end
