# frozen_string_literal: true

# What `self` is when a configuration file of Puma's is run: it writes down what is called. It is named in one piece so
# that constants of the file are looked up from the top, not in Heddle.
class Heddle::CLI::InitCommand::PumaRecorder # rubocop:disable Style/ClassAndModuleChildren
  # A call that ran.
  Record = Data.define(:name, :line, :values)

  ::Heddle::CLI::InitCommand::PumaWords::NAMES.each do |name|
    define_method(name) { |*values, **keywords| __record__(name, values, keywords) }
  end

  # @return [Array<Record>]
  attr_reader :records

  # @param path [String] of the file
  def initialize(path)
    @records = []
    @path = path
  end

  # @return [Binding] in which the file is evaluated
  def __binding__ = instance_eval("binding", __FILE__, __LINE__)

  # Puma's own, which plugins use.
  def get(_key, default = nil) = default

  private

  def respond_to_missing?(...) = false

  def method_missing(name, *values, **keywords) = __record__(name, values, keywords)

  def __record__(name, values, keywords)
    line = caller_locations(2).find { |location| location.path == @path }&.lineno
    @records << Record.new(name, line, keywords.empty? ? values : [*values, keywords])
    nil
  end
end
