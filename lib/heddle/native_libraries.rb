# frozen_string_literal: true

require "heddle/native"

module Heddle
  # Two lists of native libraries: {reentrant} and {not_reentrant}. They decide whether other fibers may run during a
  # callback, which is a block or a method that a C function of the library calls.
  #
  # During a callback, the C function may keep state per thread, as libxml2 does with its error handler. All requests of
  # an event loop share a thread, so another request must not enter the library during the callback. Therefore Heddle
  # preempts a fiber in a callback only if the library is listed as re-entrant. Waits are treated the other way round:
  # while a fiber waits in a callback, other fibers run, unless the library is listed as not re-entrant. In that case
  # the wait blocks the event loop.
  #
  # A name is the end of the library's path, without the file extension: "nokogiri/nokogiri", "ffi_c". It does not
  # contain the folder that a precompiled gem has for each version of Ruby.
  module NativeLibraries
    # Extensions of Ruby that keep no state per thread during a callback, and bootsnap, whose static variables are only
    # settings.
    REENTRANT = %w[monitor stringio date_core io/console json/ext/generator bootsnap/bootsnap].freeze
    # Libraries that are known to keep state per thread: an error handler (nokogiri), a list of calls (ffi and
    # wasmtime), a recursive lock (mini_racer).
    NOT_REENTRANT = %w[nokogiri/nokogiri ffi_c wasmtime_rb mini_racer_extension].freeze

    class << self
      # @return [Array<String>] libraries in whose callbacks fibers may be preempted
      attr_reader :reentrant
      # @return [Array<String>] libraries in whose callbacks a waiting fiber blocks the loop
      attr_reader :not_reentrant

      # @param names [Array<String>] the new list
      def reentrant=(names)
        list(names, @not_reentrant)
      end

      # @param names [Array<String>] the new list; if it is empty, a fiber that waits in a callback never blocks the
      #   loop
      def not_reentrant=(names)
        list(@reentrant, names)
      end

      private

      def list(reentrant, not_reentrant)
        both = [reentrant, not_reentrant].map { |names| Array(names).map { |name| checked(name) }.freeze }
        Native.list_libraries(*both.map { |names| names + names.grep(%r{/}) { |name| add_version(name) } })
        @reentrant, @not_reentrant = both
      end

      # Precompiled gems have a folder for each version of Ruby: nokogiri/3.4/nokogiri.so.
      def add_version(name) = name.sub(%r{(?=[^/]+\z)}, "#{RUBY_VERSION[/\A\d+\.\d+/]}/")

      def checked(name)
        return name.dup.freeze if name.is_a?(String) && name.match?(%r{\A[^/\0][^\0]*\z}) && !name.end_with?(".so")

        raise ArgumentError, "a library's name must be the end of its path without the file extension, such as " \
                             "\"nokogiri/nokogiri\", but is #{name.inspect}"
      end
    end
    list(REENTRANT, NOT_REENTRANT)
  end
end
