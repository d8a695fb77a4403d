# frozen_string_literal: true

require "json"
require_relative "test_command"

# One test file on one Ruby with one selector, in one mode of the server.
class TestProcess < TestCommand
  attr_reader :ruby, :selector, :mode

  def initialize(ruby:, file:, selector:, root:, arguments:, limit:, mode: nil)
    @ruby = ruby
    @selector = selector
    @mode = mode
    super(title: [ruby.version, selector, mode, file].compact.join(" "), root:, limit:,
          command: [ruby.path, "-Ilib", "-Itest", file, *arguments])
    @file = file
  end

  def start(folder)
    @counts = File.join(folder, "#{object_id}.json")
    super
  end

  private

  def environment
    @ruby.environment.merge("HEDDLE_SELECTOR" => @selector, "HEDDLE_MODE" => @mode, "HEDDLE_TEST_RESULT" => @counts,
                            "RUBYOPT" => nil)
  end

  def counted(_output)
    JSON.parse(File.read(@counts), symbolize_names: true)
  rescue Errno::ENOENT, JSON::ParserError
    nil
  end
end
