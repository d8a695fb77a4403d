# frozen_string_literal: true

require_relative "../http/contestants/heddle"
require_relative "../http/contestants/puma"

module Bench
  module Modes
    CONFIG = File.expand_path("config.ru", __dir__)

    # Heddle, run in one of its ways.
    class Contestant < HTTP::Contestants::Heddle
      # @return [Array<Contestant>]
      def self.all
        [new("single", %w[--mode single]), new("thread", %w[--mode thread --threads 5]),
         new("fiber", %w[--mode fiber]), new("loops", %w[--mode fiber --threads 2]),
         new("processes", %w[--mode fiber --workers 2]), new("ractors", %w[--mode ractor --threads 2])]
      end

      # @return [String]
      attr_reader :key

      # @param key [String]
      # @param flags [Array<String>] of `heddle serve`
      def initialize(key, flags)
        super()
        @key = key
        @flags = flags
      end

      def label = "Heddle, #{key}"

      def version = "#{super}, #{@flags.join(" ")}"

      def command(port, _folder, ruby_flags)
        [*program(ruby_flags), "serve", CONFIG, *@flags, "--no-access-log", "-b", "127.0.0.1:#{port}"]
      end
    end

    # Puma, which is what the mode `thread` is like.
    class Puma < HTTP::Contestants::Puma
      def command(*) = super.tap { |command| command[-1] = CONFIG }
    end
  end
end
