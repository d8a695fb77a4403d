# frozen_string_literal: true

module Heddle
  # Included in every error that Heddle defines, so that `rescue Heddle::Error` rescues them all. It is a module,
  # because many of these errors also have the class that Ruby raises in the same situation: {TimeoutError} is a
  # Timeout::Error, {ClientGoneError} an IOError.
  #
  # {Cancelled} does not include it, because Cancelled is not an error that code should handle: it is an Exception that
  # ends a task.
  module Error; end

  # The superclass of Heddle's errors that have no corresponding class in Ruby.
  #
  # @api private
  class OwnError < StandardError
    include Error
  end
end
