# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # The parsed contents of a small local file. It is parsed again when the file has changed.
      #
      # @api private
      class WatchedFile
        # @param path [String]
        # @yieldparam text [String] the file's bytes; empty if the file can't be read
        # @yieldreturn [Object] the result of {#value} until the file changes
        def initialize(path, &parse)
          @path = path
          @parse = parse
          @loaded = false
        end

        # @return [Object] the block's result for the current file
        def value
          # Without Fiber.blocking, Ruby >= 3.4 would let the scheduler run the stat and the read on a thread. For a
          # short local file, using a thread costs more than the calls themselves.
          Fiber.blocking do
            stamp = stamp_now
            load(stamp) unless @loaded && stamp == @stamp
          end
          @value
        end

        private

        # The stamp is from before the text is read, so that the next call notices a change in between.
        def load(stamp)
          @value = @parse.call(text)
          @stamp = stamp
          @loaded = true
        end

        # Includes inode and size, because a file may be replaced before the file system's clock advances.
        def stamp_now
          stat = File.stat(@path)
          [stat.mtime, stat.size, stat.ino, stat.dev]
        rescue SystemCallError
          nil
        end

        def text
          File.binread(@path)
        rescue SystemCallError
          "".b
        end
      end
    end
  end
end
