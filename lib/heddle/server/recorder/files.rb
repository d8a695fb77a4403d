# frozen_string_literal: true

module Heddle
  class Server
    class Recorder
      # The files with traces. Only the server's user may read them. Old files of that user are deleted.
      class Files
        PREFIX = "heddle-trace-"
        # Maximum number of files, and maximum size in bytes of all files together before a new one is written.
        COUNT = 20
        BYTES = 100 << 20
        MODE = ::File::WRONLY | ::File::CREAT | ::File::EXCL | ::File::NOFOLLOW
        private_constant :PREFIX, :COUNT, :BYTES, :MODE

        # @param environment [String] the option `environment`
        # @param root [String] the folder in which the server was started
        # @return [String] the folder for the files. In development it is `tmp` below the root, if this process may
        #   write to it and it is not world-writable; otherwise it is a folder for temporary files, or the current
        #   folder if none is usable.
        def self.folder(environment, root = WorkingFolder.started)
          own = ::File.join(root, "tmp")
          return own if environment == "development" && ::File.writable?(own) && !::File.world_writable?(own)

          TemporaryFolder.find || "."
        end

        # @param folder [String]
        def initialize(folder)
          @folder = folder
        end

        # @yieldparam io [IO] the file
        # @return [String] its path
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
          nil # the file was not created, or is renamed already
        end

        # Deletes the oldest files beyond COUNT - 1 files or BYTES bytes. Sorted names are in the order of time.
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
