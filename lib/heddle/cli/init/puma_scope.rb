# frozen_string_literal: true

require "etc"
require "pathname"

# The `self` of a configuration file of Puma while it runs; here the settings do nothing. The class is defined by its
# full name, so that Ruby looks up the file's constants at the top level, not in Heddle.
class Heddle::CLI::InitCommand::PumaScope # rubocop:disable Style/ClassAndModuleChildren
  # Stands for `Rails`, because the application is not loaded: configuration files use its environment and its root
  # folder.
  module Rails
    # @return [String] the environment, with methods such as `production?`
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
  end

  # Stands for the gem concurrent-ruby, which configuration files use for the number of processors.
  module Concurrent
    def self.processor_count = ::Etc.nprocessors
    def self.physical_processor_count = ::Etc.nprocessors
    def self.available_processor_count = ::Etc.nprocessors
  end

  (::Heddle::CLI::InitCommand::PumaSettings::NAMES - %i[cluster]).each { |name| define_method(name) { |*, **| nil } }

  # Runs the block, which has the settings of a Puma with workers. Heddle has workers in production, too.
  def cluster = yield

  # @return [Array<Symbol>] names of the methods that the file has called and that are not settings of Puma
  attr_reader :unknown

  def initialize
    @unknown = []
  end

  # @return [Binding] the binding in which to evaluate the file
  def __binding__ = instance_eval("binding", __FILE__, __LINE__)

  # Must be called after the file has run. From then on, unknown names raise NameError.
  def finish = @unknown.freeze

  private

  def respond_to_missing?(...) = false

  def method_missing(name, ...) = @unknown.frozen? ? super : [@unknown << name, nil].last
end
