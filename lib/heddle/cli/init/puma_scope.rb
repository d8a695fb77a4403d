# frozen_string_literal: true

require "etc"
require "pathname"

# `self` while a configuration file of Puma's runs: Puma's settings do nothing. The class is opened by its full name,
# so that constants of the file are looked up at the top level, not in Heddle.
class Heddle::CLI::InitCommand::PumaScope # rubocop:disable Style/ClassAndModuleChildren
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
  end

  # The number of processors, which applications ask the gem concurrent-ruby for.
  module Concurrent
    def self.processor_count = ::Etc.nprocessors
    def self.physical_processor_count = ::Etc.nprocessors
    def self.available_processor_count = ::Etc.nprocessors
  end

  (::Heddle::CLI::InitCommand::PumaSettings::NAMES - %i[cluster]).each { |name| define_method(name) { |*, **| nil } }

  # Its block sets what applies where Puma starts workers, as Heddle does in production.
  def cluster = yield

  # @return [Array<Symbol>] names of methods that the file has called and that are no settings of Puma's
  attr_reader :unknown

  def initialize
    @unknown = []
  end

  # @return [Binding] in which the file is evaluated
  def __binding__ = instance_eval("binding", __FILE__, __LINE__)

  # Must be called when the file has run. From now on unknown names raise, as in any other program.
  def finish = @unknown.freeze

  private

  def respond_to_missing?(...) = false

  def method_missing(name, ...) = @unknown.frozen? ? super : [@unknown << name, nil].last
end
