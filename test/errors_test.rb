# frozen_string_literal: true

# test: once

require "test_helper"
require_relative "support/scheduled"

# Every error of Heddle's is a Heddle::Error, so that one `rescue` takes them all, and its name says that it is one.
class ErrorsTest < Minitest::Test
  include Scheduled

  LIB = File.join(ROOT, "lib")

  # These end a task, a name resolution, a call on an offload thread, or the loading of a file. They are no errors to be
  # handled, so a `rescue` without a class must not take them.
  INTERRUPTIONS = %w[
    Heddle::CLI::InitCommand::ApplicationGuard::Refused Heddle::Cancelled Heddle::Net::Connector::Expired
    Heddle::Scheduler::ThreadPool::Job::Stop
  ].freeze
  # Files that need a library which the program has not loaded are left out.
  LOAD_ALL = <<~RUBY
    require "active_record" # one error is Active Record's, too
    require "heddle"
    Dir.glob("heddle/**/*.rb", base: ARGV.fetch(0)).sort.each do |file|
      require file.delete_suffix(".rb")
    rescue LoadError, NameError
      puts "left out: \#{file}"
    end
    ObjectSpace.each_object(Exception.singleton_class) do |type|
      next unless type.name&.start_with?("Heddle::")

      puts [type.name, type.include?(Heddle::Error), type <= StandardError || type <= LoadError || false].join(" ")
    end
  RUBY

  def test_every_exception_is_a_heddle_error_or_a_named_interruption
    out, status = ruby(LOAD_ALL, LIB, flags: %w[--enable=gems])

    assert_predicate status, :success?, out
    left_out, rows = out.lines(chomp: true).sort.partition { |line| line.delete_prefix!("left out: ") }
    rows.map!(&:split)
    interruptions, errors = rows.partition { |name,| INTERRUPTIONS.include?(name) }

    assert_equal INTERRUPTIONS.map { |name| [name, "false", "false"] }, interruptions
    assert_operator errors.size, :>, 50
    assert_empty(errors.reject { |_, included, rescued| included == "true" && rescued == "true" })
    assert_empty errors.map(&:first).grep_v(/Error\z/)
    assert_empty(left_out.select { |file| File.read("#{LIB}/#{file}").match?(/class \w+ < \S*(?:Error|Exception)\b/) })
  end
end
