# frozen_string_literal: true

require "heddle/native"

module Heddle
  # @api private
  # Recognizes Heddle's own Ruby code, which expects switches only where it waits. Before an interruption that may come
  # anywhere (a preemption, Ctrl-C), Heddle checks whose code runs. Ruby's library counts as its caller's code, and a
  # signal's handler as the code that it has interrupted.
  module OwnCode
    @added = []
    class << self
      # Adds other code that expects switches only where it waits.
      #
      # @param folders [Array<String>] what its paths begin with
      def add(folders)
        @added |= folders
        pass_paths
      end

      # The extension compares the paths with the frames of the running code.
      def pass_paths
        own = [__dir__, File.realpath(__dir__)].uniq.flat_map { |folder| paths(folder) }
        handlers = %w[scheduler/signal_guard.rb preemption/signal_handlers.rb].map { |name| File.join(__dir__, name) }
        Native.own_code_is(own + @added, ["<internal:", *libraries, *handlers])
      end

      private

      # The folders of Ruby's library. On Debian, RubyGems, whose `require` Heddle's code calls, has a separate folder.
      def libraries
        rubygems = "#{Gem::RUBYGEMS_DIR}/rubygems" if defined?(Gem::RUBYGEMS_DIR)
        ["#{RbConfig::CONFIG["rubylibdir"]}/", *rubygems]
      end

      # The demo is an application like any other.
      def paths(folder)
        names = Dir.children(folder) - %w[cli native]
        names.map { |name| File.join(folder, name.end_with?(".rb") ? name : "#{name}/") }
      end
    end
    pass_paths
  end
end
