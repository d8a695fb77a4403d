# frozen_string_literal: true

require "etc"
require "pathname"

# `self` while a configuration file of Puma's runs: it records the calls. The class is opened by its full name,
# so that constants of the file are looked up at the top level, not in Heddle.
class Heddle::CLI::InitCommand::PumaRecorder # rubocop:disable Style/ClassAndModuleChildren
  # A call that ran.
  Record = Data.define(:name, :line, :values)

  # Stands for `Rails` where the application is not loaded: files ask for its environment and its folder.
  module Rails
    # @return [String] with methods such as `production?`
    def self.env
      name = ENV["RAILS_ENV"] || ENV["APP_ENV"] || ENV["RACK_ENV"] || "development"
      name.dup.tap do |text|
        text.define_singleton_method(:respond_to_missing?) { |word, *| word.end_with?("?") }
        text.define_singleton_method(:method_missing) do |word, *rest|
          next %w[development test].include?(name) if word == :local?

          word.end_with?("?") ? word == :"#{name}?" : super(word, *rest)
        end
      end
    end

    # @return [Pathname]
    def self.root = ::Pathname.new(::Dir.pwd)

    def self.const_missing(name) = ::Rails.const_get(name)
  end

  # The number of processors, which applications ask the gem concurrent-ruby for.
  module Concurrent
    def self.processor_count = ::Etc.nprocessors
    def self.physical_processor_count = ::Etc.nprocessors
    def self.available_processor_count = ::Etc.nprocessors
    def self.const_missing(name) = ::Concurrent.const_get(name)
  end

  (::Heddle::CLI::InitCommand::PumaSettings::NAMES - %i[cluster]).each do |name|
    define_method(name) { |*values, **keywords| __record__(name, values, keywords) }
  end

  # Its block sets what applies where Puma starts workers, as Heddle does in production.
  def cluster = yield

  # @return [Array<Record>]
  attr_reader :records

  # @param path [String] of the file
  def initialize(path)
    @records = []
    @path = path
  end

  # @return [Binding] in which the file is evaluated
  def __binding__ = instance_eval("binding", __FILE__, __LINE__)

  # Puma's DSL#get, which plugins call.
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
