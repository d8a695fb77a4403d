# frozen_string_literal: true

require "fileutils"

module Bench
  module HTTP
    # One server, started as its users start it.
    class Contestant
      # The server can't be run here, with the reason.
      class Unavailable < StandardError; end

      CONFIG = File.expand_path("config.ru", __dir__)
      APPLICATION = File.expand_path("application", __dir__)
      GEM_PATHS = File.join(ROOT, "bin", "support", "gem_paths.rb")

      # @param settings [Hash] what `new` takes
      # @return [Array<Contestant>] one for each way to run the server
      def self.variants(**settings) = [new(**settings)]

      # @param config [String] the path of the application's config.ru
      # @param processes [Integer] how many of them serve
      def initialize(config: CONFIG, processes: 1)
        @config = config
        @processes = processes
      end

      # @param count [Integer]
      # @return [Contestant] the same with so many processes that serve
      def with_processes(count) = clone.tap { |other| other.processes = count }

      # @return [String] the word for --contestants
      def key = raise(NotImplementedError)

      # @return [String] the heading of its column
      def label = key

      # @return [Symbol] :peer, :heddle, or :baseline for what runs no Ruby
      def role = :peer

      # @return [String] with what matters of its settings
      # @raise [Unavailable]
      def version = "#{gem_version}#{", #{settings}" if settings}"

      # @return [String, nil] settings a reader should know
      def settings = nil

      # @param port [Integer] to listen on, at 127.0.0.1
      # @param folder [String] an empty folder for files it needs, its working directory
      # @param ruby_flags [Array<String>]
      # @return [Array<String>]
      def command(_port, _folder, _ruby_flags) = raise(NotImplementedError)

      # @return [Hash] environment variables beside the common ones
      def environment = {}

      # @return [String, nil] why it does not take part in the row
      def excludes(_row_key) = nil

      protected

      attr_writer :processes

      private

      def gem_name = key

      def gem_version
        Gem::Specification.find_by_name(gem_name).version.to_s
      rescue Gem::MissingSpecError
        raise Unavailable, "the gem #{gem_name} is not installed"
      end

      # @return [Array<String>] the start of a command that runs an executable of a gem
      def executable(name, ruby_flags)
        [RbConfig.ruby, *ruby_flags, "-r", GEM_PATHS, Gem.bin_path(gem_name, name)]
      end
    end
  end
end
