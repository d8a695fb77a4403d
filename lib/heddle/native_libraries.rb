# frozen_string_literal: true

require "heddle/native"

module Heddle
  # Native libraries by what a switch of fibers may do to them.
  #
  # A C function that calls a block, or a method of an object that it was given, may keep something by its thread
  # meanwhile, such as libxml2 its error handler. All requests of a worker share a thread, so another request must not
  # run then. Heddle does not preempt a fiber while a C function of any extension waits for it, but for these.
  module NativeLibraries
    # Extensions that come with Ruby, keep nothing by their thread, and call back in the middle of nothing.
    REENTRANT = %w[monitor stringio date_core json/ext/generator enc/encdb enc/trans/transdb].freeze
    # What keeps something by its thread, and is known to.
    NOT_REENTRANT = %w[nokogiri/nokogiri ffi_c].freeze

    class << self
      # @return [Array<String>] the ends of their paths
      attr_reader :reentrant, :not_reentrant

      # @api private
      def list(reentrant: REENTRANT, not_reentrant: NOT_REENTRANT)
        Native.list_libraries(reentrant, not_reentrant)
        @reentrant = reentrant
        @not_reentrant = not_reentrant
      end
    end
    list
  end
end
