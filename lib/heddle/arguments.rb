# frozen_string_literal: true

module Heddle
  # Validates arguments that a program passes. Each method returns the argument, or raises an ArgumentError that names
  # it.
  # @api private
  module Arguments
    class << self
      # @param seconds [Object]
      # @param name [String] the name of the argument, for the error message
      # @return [Numeric] the interval, which is finite and greater than 0
      def interval(seconds, name = "the interval")
        length?(seconds) ? seconds : refuse(name, seconds, "a positive number of seconds")
      end

      # @param name [String] the name of the argument, for the error message
      # @param seconds [Object]
      # @return [Numeric, nil] the time limit, which is finite and greater than 0; nil: no limit
      def limit(name, seconds)
        seconds.nil? || length?(seconds) ? seconds : refuse(name, seconds, "a positive number of seconds, or nil")
      end

      # @param (see limit)
      # @return [Numeric, nil] the time limit of a wait; 0 or less: the time is over already; nil: no limit
      def wait(name, seconds)
        seconds.nil? || (seconds <=> 0) ? seconds : refuse(name, seconds, "a number of seconds, or nil")
      end

      # @param (see limit)
      # @return [Integer] a number of at least `least`
      def count(name, number, least)
        number.is_a?(Integer) && number >= least ? number : refuse(name, number, "an Integer of at least #{least}")
      end

      # @param (see limit)
      # @return [#call, nil]
      def callable(name, object)
        object.nil? || object.respond_to?(:call) ? object : refuse(name, object, "an object with `call`, or nil")
      end

      # @param (see limit)
      # @return [String]
      def string(name, text) = text.respond_to?(:to_str) ? text.to_str : refuse(name, text, "a String")

      # @param (see limit)
      # @return [Hash, #each] a Hash, or a list of names and values
      def fields(name, fields) = fields.respond_to?(:each) ? fields : refuse(name, fields, "a Hash")

      # @param topic [#to_s]
      # @return [String] the topic. Raises for nil, which would otherwise become the topic ""
      def topic(topic) = topic.nil? ? refuse("the topic", topic, "a String or a Symbol") : topic.to_s

      # @param name [String] the name of the argument
      # @param value [Object] what was passed
      # @param allowed [String] what must be passed
      # @raise [ArgumentError] always
      def refuse(name, value, allowed) = raise(ArgumentError, "#{name} is #{value.inspect}, but must be #{allowed}")

      private

      def length?(value) = value.is_a?(Numeric) && value.positive? && value.finite?
    end
  end
end
