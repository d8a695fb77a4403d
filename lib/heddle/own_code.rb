# frozen_string_literal: true

require "heddle/native"

module Heddle
  # @api private
  # Recognizes Heddle's own Ruby code, which must not be interrupted except where it waits. Before Heddle interrupts a
  # fiber (by preemption or Ctrl-C), it checks whose code is running. Code of Ruby's standard library counts as its
  # caller's code. Heddle's own signal handlers count as the code that they have interrupted.
  module OwnCode
    @added = []
    class << self
      # Adds other code that must not be interrupted except where it waits.
      #
      # @param folders [Array<String>] prefixes of the code's paths
      def add(folders)
        @added |= folders
        pass_paths
      end

      # Passes the paths to the extension, which compares them with the frames of the running code.
      def pass_paths
        own = [__dir__, File.realpath(__dir__)].uniq.flat_map { |folder| paths(folder) }
        handlers = %w[scheduler/signal_guard.rb preemption/signal_handlers.rb].map { |name| File.join(__dir__, name) }
        Native.own_code_is(own + @added, ["<internal:", *libraries, *handlers])
      end

      private

      # The folders of Ruby's standard library. RubyGems is included, because Heddle's code calls its `require`. On
      # Debian, RubyGems is in a separate folder.
      def libraries
        rubygems = "#{Gem::RUBYGEMS_DIR}/rubygems" if defined?(Gem::RUBYGEMS_DIR)
        ["#{RbConfig::CONFIG["rubylibdir"]}/", *rubygems]
      end

      # The paths of Heddle's code. The folder cli is left out, because the demo in it is an ordinary application, and
      # native, because it has no Ruby code.
      def paths(folder)
        names = Dir.children(folder) - %w[cli native]
        names.map { |name| File.join(folder, name.end_with?(".rb") ? name : "#{name}/") }
      end
    end
    pass_paths
  end
end
