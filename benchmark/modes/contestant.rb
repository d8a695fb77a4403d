# frozen_string_literal: true

require_relative "../http/contestants/heddle"
require_relative "../http/contestants/puma"

module Bench
  module Modes
    CONFIG = File.expand_path("config.ru", __dir__)

    # Heddle, run in one of its ways. One process serves, as Puma's, except in `processes`: production's default is a
    # worker for each core.
    class Contestant < HTTP::Contestants::Heddle
      # @return [Array<Contestant>]
      def self.all
        { "single" => %w[--mode single --workers 0], "thread" => %w[--mode thread --threads 5 --workers 0],
          "fiber" => %w[--mode fiber --workers 0], "loops" => %w[--mode fiber --threads 2 --workers 0],
          "processes" => %w[--mode fiber --workers 2], "ractors" => %w[--mode ractor --threads 2 --workers 0] }
          .map { |key, flags| new(key, flags) }
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
