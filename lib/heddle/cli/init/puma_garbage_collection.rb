# frozen_string_literal: true

module Heddle
  module CLI
    class InitCommand
      # Full collections out of band: a hook switches them off, and out_of_band starts them. One without the other lets
      # the memory grow without end, so the option out_of_band_gc replaces both, or neither is carried over.
      class PumaGarbageCollection
        OFF = /rgengc_allow_full_mark\W+false|\bGC\.disable\b/
        OFF_ALONE = /\A(?:\{|do)\s*(?:\|[^|]*\|)?\s*GC\.(?:config\([^()]*\)|config [^;\n]*?|disable)\s*(?:\}|end)\z/
        START = /\bGC\.(?:start|compact|config|enable)\b/
        private_constant :OFF, :OFF_ALONE, :START

        # @param call [PumaFile::Call]
        # @return [Boolean] whether the call is one half of the pair
        def self.part?(call)
          return false unless call.block

          call.name == :out_of_band ? START.match?(call.block) : OFF.match?(call.block)
        end

        # @param calls [Array<PumaFile::Call>] all of the file
        def initialize(calls)
          @starts = calls.any? { |call| call.name == :out_of_band && PumaGarbageCollection.part?(call) }
        end

        # @param call [PumaFile::Call] a {part?}
        # @return [String, nil] why out_of_band_gc does not replace it; nil: it does
        def left(call)
          return "the option out_of_band_gc does this, with Ruby 3.4 on Linux" unless Server::OutOfBandGC.available?
          return "it switches full collections off, which nothing starts: see out_of_band_gc" unless @starts
          return if call.name == :out_of_band || OFF_ALONE.match?(call.block)

          "it switches full collections off, as out_of_band_gc does; the rest of it belongs into worker_boot { }"
        end
      end
    end
  end
end
