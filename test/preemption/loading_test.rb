# frozen_string_literal: true

require "test_helper"
require "support/preempted"
require "tmpdir"

# A file is loaded once, and completely before any fiber uses what it defines: fibers of one loop that require it at the
# same time wait, as threads do.
class LoadingTest < Minitest::Test
  include Preempted

  def setup
    super
    @folder = File.realpath(Dir.mktmpdir)
    @features = $LOADED_FEATURES.dup
  end

  def teardown
    super
    $LOADED_FEATURES.replace(@features)
    FileUtils.remove_entry(@folder)
  end

  # What the file does before its constant is complete.
  MEANWHILE = {
    "computes" => "ended = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.05\n" \
                  "nil until Process.clock_gettime(Process::CLOCK_MONOTONIC) > ended",
    "waits" => "sleep 0.005", "reads a pipe" => "IO.pipe.each(&:close)\nIO.popen('echo x', &:read)"
  }.freeze

  # @return [Module] to which a file belongs that defines `VALUE` in it
  def owner(name, meanwhile)
    made = LoadingTest.const_set(name, Module.new)
    file = File.join(@folder, "#{name.downcase}.rb")
    File.write(file, "#{made.name}::LOADS << 1\n#{meanwhile}\nmodule #{made.name}\n  VALUE = :whole\nend\n")
    made.const_set(:LOADS, [])
    [made, file]
  end

  # Asks for it in three fibers of a loop, and in a thread.
  def ask_at_once(&block)
    found = []
    scheduled do
      3.times { Fiber.schedule { found << block.call } }
      Thread.new { found << block.call }.join
    end
    found
  end

  MEANWHILE.each_with_index do |(what, code), number|
    define_method("test_a_file_that_#{what.tr(" ", "_")}_is_required_once_and_whole") do
      made, file = owner("Required#{number}", code)
      found = ask_at_once do
        require file
        made.const_get(:VALUE)
      end

      assert_equal [[:whole] * 4, [1]], [found, made::LOADS]
    end

    define_method("test_a_constant_whose_file_#{what.tr(" ", "_")}_is_loaded_once_and_whole") do
      made, file = owner("Autoloaded#{number}", code)
      made.autoload(:VALUE, file)

      assert_equal [[:whole] * 4, [1]], [ask_at_once { made.const_get(:VALUE) }, made::LOADS]
    end
  end
end
