# frozen_string_literal: true

require "digest"

module Heddle
  module CLI
    class Demo
      # The page's static files, read once. They are small: a style sheet, scripts, two fonts.
      #
      # Their addresses carry a digest of all of them, so that a browser may keep them for good and
      # still never mixes two versions of Heddle.
      class Assets
        # The prefix of every asset's path.
        PREFIX = "/assets/"

        TYPES = {
          ".css" => "text/css; charset=utf-8", ".js" => "text/javascript; charset=utf-8",
          ".svg" => "image/svg+xml", ".woff2" => "font/woff2"
        }.freeze
        private_constant :TYPES

        # @param folder [String]
        def initialize(folder = File.join(__dir__, "assets"))
          @files = Dir.glob("**/*", base: folder).sort.filter_map do |name|
            [name, File.binread(File.join(folder, name)).freeze] if TYPES.key?(File.extname(name))
          end.to_h.freeze
          @version = Digest::SHA256.hexdigest(@files.flatten.join("\0")).slice(0, 12).freeze
        end

        # @param name [String] a file's name in the folder
        # @return [String] its path on this server
        def path(name)
          raise KeyError, "unknown asset #{name} (known: #{@files.keys.join(", ")})" unless @files.key?(name)

          "#{PREFIX}#{@version}/#{name}"
        end

        # @param env [Hash] the Rack environment
        # @return [Array(Integer, Hash, #each)] a Rack answer
        def call(env)
          version, name = env["PATH_INFO"].delete_prefix(PREFIX).split("/", 2)
          file = @files[name] if version == @version
          return Answer.text(404, "There is no such file. The demo is at /.\n") unless file

          Answer.whole(200, TYPES.fetch(File.extname(name)), file,
                       "cache-control" => "public, max-age=31536000, immutable")
        end
      end
    end
  end
end
