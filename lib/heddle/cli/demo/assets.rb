# frozen_string_literal: true

require "digest"

module Heddle
  module CLI
    class Demo
      # The static files of the page, read once. Their paths contain a digest of all files. So a browser may cache them
      # forever, and never mixes the files of two versions of Heddle.
      class Assets
        PREFIX = "/assets/"

        TYPES = { ".css" => "text/css; charset=utf-8", ".js" => "text/javascript; charset=utf-8",
                  ".svg" => "image/svg+xml" }.freeze
        private_constant :TYPES

        def initialize(folder = File.join(__dir__, "assets"))
          @files = Dir.children(folder).sort.to_h { |name| [name, File.binread(File.join(folder, name)).freeze] }.freeze
          @version = Digest::SHA256.hexdigest(@files.flatten.join("\0")).slice(0, 12).freeze
        end

        # @return [String] the URL path of a file
        def path(name) = "#{PREFIX}#{@version}/#{name}"

        # @return [Array(Integer, Hash, #each)] a Rack response
        def call(env)
          version, name = env["PATH_INFO"].delete_prefix(PREFIX).split("/", 2)
          file = @files[name] if version == @version
          return Answer.text(404, "This file does not exist. The demo is at /.\n") unless file

          Answer.whole(200, TYPES.fetch(File.extname(name)), file,
                       "cache-control" => "public, max-age=31536000, immutable")
        end
      end
    end
  end
end
