# frozen_string_literal: true

# `self` in a configuration file. It has a method for each option and each hook, and no other methods of Heddle. The
# class is opened by its full name, so that Ruby looks up constants of the file at the top level, not in Heddle.
class Heddle::Server::Configuration::Context # rubocop:disable Style/ClassAndModuleChildren
  ::Heddle::Options::IN_FILE.each do |option|
    define_method(option.name) { |*values, &block| @__heddle__.option(option, values, block) }
  end

  ::Heddle::Server::Hooks::NAMES.each_key do |name|
    define_method(name) { |*values, &block| @__heddle__.hook(name, values, block) }
  end

  def initialize(reader)
    @__heddle__ = reader
  end

  # @return [Binding] the binding in which the file is evaluated. It has no local variables. Constants and methods that
  #   the file defines belong to this object alone.
  def __binding__ = instance_eval("binding", __FILE__, __LINE__)

  def inspect = "the configuration file"

  private

  def method_missing(name, ...) = @__heddle__.unknown(name)

  def respond_to_missing?(...) = false
end
