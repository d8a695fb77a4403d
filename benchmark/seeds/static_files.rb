# frozen_string_literal: true

require "fileutils"
require "zlib"

module Bench
  module Seeds
    # Twenty files of a web page, and beside each file of text its compressed forms.
    module StaticFiles
      # Kilobytes of each.
      TEXTS = { "reset.css" => 8, "layout.css" => 25, "theme.css" => 40, "components.css" => 200, "utilities.css" => 60,
                "analytics.js" => 12, "helpers.js" => 20, "app.js" => 200, "vendor.js" => 300, "router.js" => 35,
                "header.html" => 55, "footer.html" => 120, "logo.svg" => 15, "icon-sprite.svg" => 70,
                "manifest.json" => 3 }.freeze
      OTHERS = { "regular.woff2" => 18, "bold.woff2" => 22, "hero.webp" => 45, "thumb1.webp" => 6,
                 "thumb2.webp" => 8 }.freeze
      FOLDER = "static"
      WORDS = %w[function return color margin padding const class section data display block width].freeze
      private_constant :WORDS

      module_function

      # @return [Array<String>] their addresses
      def paths = [*TEXTS.keys, *OTHERS.keys].map { |name| "/#{FOLDER}/#{name}" }

      # @param folder [String] an empty one
      # @return [void]
      def write(folder)
        FileUtils.mkdir_p(File.join(folder, FOLDER))
        random = Random.new(17)
        TEXTS.each do |name, kilobytes|
          content = text(random, kilobytes * 1_000)
          put(folder, name, content)
          put(folder, "#{name}.gz", Zlib.gzip(content, level: 9))
        end
        OTHERS.each { |name, kilobytes| put(folder, name, random.bytes(kilobytes * 1_000)) }
      end

      def text(random, bytes)
        content = +""
        content << "#{WORDS.sample(random:)}#{random.rand(100)}: #{WORDS.sample(random:)};\n" while content.size < bytes
        content[0, bytes]
      end

      def put(folder, name, content) = File.binwrite(File.join(folder, FOLDER, name), content)
      private_class_method :text, :put
    end
  end
end
