# frozen_string_literal: true

module Heddle
  class Server
    class Recorder
      # The recorded files, which only this user may read. Of each user's files in a folder, only the newest are kept.
      class Files
        PREFIX = "heddle-trace-"
        # How many files are kept, and how many bytes together.
        COUNT = 20
        BYTES = 100 << 20
        MODE = ::File::WRONLY | ::File::CREAT | ::File::EXCL | ::File::NOFOLLOW
        # Matches a line of .gitignore that makes Git ignore the folder tmp.
        IGNORED = %r{^(\*\*/|/)?tmp(/\**)?\s*$}
        private_constant :PREFIX, :COUNT, :BYTES, :MODE, :IGNORED

        # @param environment [String] of the application
        # @param root [String] where the server was started
        # @return [String] in development `tmp` below the root, if Git ignores it, this process may write to it and not
        #   every user may; else a folder for temporary files
        def self.folder(environment, root = WorkingFolder.started)
          own, ignored = ::File.join(root, "tmp"), ::File.join(root, ".gitignore")
          return own if environment == "development" && ::File.writable?(own) && !::File.world_writable?(own) &&
                        ::File.readable?(ignored) && ::File.binread(ignored).match?(IGNORED)

          TemporaryFolder.find || "."
        end

        # @param folder [String]
        def initialize(folder)
          @folder = folder
        end

        # @yieldparam io [IO]
        # @return [String] the path
        # @raise [SystemCallError]
        def write(&)
          remove_oldest
          path = ::File.join(@folder, "#{PREFIX}#{Time.now.strftime("%Y%m%d-%H%M%S-%6N")}-#{Process.pid}.json")
          ::File.open("#{path}.new", MODE, 0o600, &)
          ::File.rename("#{path}.new", path)
          path
        ensure
          discard("#{path}.new") if path
        end

        private

        def discard(path)
          ::File.unlink(path)
        rescue SystemCallError
          nil # it was not created, or was renamed already
        end

        # Deletes the oldest files, to make room for one more. Names begin with the time.
        def remove_oldest
          bytes = 0
          Dir.glob("#{PREFIX}*", base: @folder).sort.reverse.each_with_index do |name, index|
            path = ::File.join(@folder, name)
            stat = ::File.lstat(path)
            next unless stat.file? && stat.owned?

            bytes += stat.size
            ::File.unlink(path) if index >= COUNT - 1 || bytes > BYTES
          rescue SystemCallError
            next # another process has removed it
          end
        end
      end
    end
  end
end
