# frozen_string_literal: true

module Heddle
  module Net
    class Resolver
      # The parsed contents of a small local file, parsed again when the file has changed.
      #
      # @api private
      class WatchedFile
        # @param path [String]
        # @yieldparam text [String] the file's bytes; empty when it can't be read
        # @yieldreturn [Object] what {#value} returns until the file changes
        def initialize(path, &parse)
          @path = path
          @parse = parse
          @loaded = false
        end

        # @return [Object] what the block made of the file as it is now
        def value
          # One stat and a short read of a local file: on Ruby >= 3.4 the scheduler would otherwise be asked to run
          # each on a thread, which costs more than the call.
          Fiber.blocking do
            stamp = stamp_now
            load(stamp) unless @loaded && stamp == @stamp
          end
          @value
        end

        private

        # The stamp is taken before the text is read, so that a change in between is noticed the next time.
        def load(stamp)
          @value = @parse.call(text)
          @stamp = stamp
          @loaded = true
        end

        # Has inode and size beside the time, because a file may be replaced within one tick of its clock.
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
