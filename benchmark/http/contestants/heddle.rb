# frozen_string_literal: true

require "open3"

module Bench
  module HTTP
    module Contestants
      # Heddle as `heddle serve` runs it, with the selector that it chooses by itself.
      class Heddle < Contestant
        def key = "heddle"

        # @return [String] the checkout it is run from
        def root = ROOT

        def label = "Heddle"

        def role = :heddle

        def version
          words, status = Open3.capture2(RbConfig.ruby, "-r", gem_paths, "-r", "heddle", "-r", "heddle/scheduler", "-e",
                                         "print Heddle::VERSION, ', ', Heddle::Selector.best", err: File::NULL)
          raise Unavailable, "its extension is not built for this Ruby: run bin/setup" unless status.success?

          words
        end

        def command(port, _folder, ruby_flags)
          [*program(ruby_flags), "serve", @config,
           "--no-access-log", "--workers", (@processes == 1 ? 0 : @processes).to_s, "-b", "tcp://127.0.0.1:#{port}"]
        end

        private

        def program(ruby_flags) = [RbConfig.ruby, *ruby_flags, "-r", gem_paths, File.join(root, "exe", "heddle")]

        def gem_paths = File.join(root, "bin", "support", "gem_paths.rb")
      end
    end
  end
end
