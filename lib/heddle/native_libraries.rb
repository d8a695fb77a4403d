# frozen_string_literal: true

require "heddle/native"

module Heddle
  # Lists the native libraries during whose callbacks other fibers may run, or must not run.
  #
  # While a C function calls a block or a method, it may keep state by thread, as libxml2 keeps its error handler. All
  # requests of a loop share a thread, so another request must not run meanwhile. Therefore Heddle does not preempt a
  # fiber within a callback of an extension, unless the extension is listed as re-entrant. If the extension is declared
  # not re-entrant, a fiber that waits within its callback blocks the loop.
  #
  # A library is named by the end of its file's path without the extension: "nokogiri/nokogiri", "ffi_c". A
  # precompiled gem's folder for the version of Ruby is left out.
  module NativeLibraries
    # Extensions of Ruby that keep no state by thread during a callback. Also bootsnap, whose static variables are only
    # settings.
    REENTRANT = %w[monitor stringio date_core io/console json/ext/generator bootsnap/bootsnap].freeze
    # Libraries that are known to keep state by thread: an error handler (nokogiri), a list of calls (ffi and wasmtime),
    # a re-entrant lock (mini_racer).
    NOT_REENTRANT = %w[nokogiri/nokogiri ffi_c wasmtime_rb mini_racer_extension].freeze

    @reentrant = REENTRANT
    @not_reentrant = NOT_REENTRANT

    class << self
      # @return [Array<String>] libraries in whose callbacks fibers are preempted like anywhere else
      attr_reader :reentrant
      # @return [Array<String>] libraries in whose callbacks a waiting fiber blocks the loop
      attr_reader :not_reentrant

      # @param names [Array<String>] replace the list
      def reentrant=(names)
        list(names, @not_reentrant)
      end

      # @param names [Array<String>] replace the list; none: no waiting fiber blocks the loop
      def not_reentrant=(names)
        list(@reentrant, names)
      end

      private

      def list(reentrant, not_reentrant)
        both = [reentrant, not_reentrant].map { |names| names.map { |name| checked(name) }.freeze }
        Native.list_libraries(*both.map { |names| names + names.grep(%r{/}) { |name| add_version(name) } })
        @reentrant, @not_reentrant = both
      end

      # Precompiled gems have a folder for each version of Ruby: nokogiri/3.4/nokogiri.so.
      def add_version(name) = name.sub(%r{(?=[^/]+\z)}, "#{RUBY_VERSION[/\A\d+\.\d+/]}/")

      def checked(name)
        return name.dup.freeze if name.is_a?(String) && name.match?(%r{\A[^/\0][^\0]*\z}) && !name.end_with?(".so")

        raise ArgumentError, "name the end of the library's path without the extension, such as " \
                             "\"nokogiri/nokogiri\", not #{name.inspect}"
      end
    end
    self.reentrant = REENTRANT
  end
end
