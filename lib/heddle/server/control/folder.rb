# frozen_string_literal: true

require "etc"

module Heddle
  class Server
    class Control
      # A folder for workers' sockets, this user's alone, that goes with the processes which use it: they hold a lock on
      # it, so that one whose server was killed is known by its lock being free, and the next server removes it.
      #
      # tmpdir and fileutils would cost every master 0.6 MB.
      class Folder
        PREFIX = "heddle-workers-"
        # Bytes of the random part of its name.
        RANDOM = 8
        # Bytes of a path in it, at most: of the folder, and of a worker's socket.
        LONGEST = PREFIX.bytesize + (RANDOM * 2) + "/4194304.sock".bytesize
        # Bytes of a Unix socket's path, at most.
        SOCKET_PATH = 107
        private_constant :PREFIX, :RANDOM, :LONGEST, :SOCKET_PATH

        # @return [String, nil] the folder for temporary files, or the system's own where TMPDIR is too long for the
        #   path of a socket; nil: there is none
        def self.parent
          folder = TemporaryFolder.find
          folder && folder.bytesize + 1 + LONGEST > SOCKET_PATH ? Etc.systmpdir : folder
        end

        # @return [String] the start of abstract names where no folder can be written to
        attr_reader :path

        # @param parent [String, nil] the folder that it is made in
        # @raise [BootError]
        def initialize(parent = self.class.parent)
          parent ? make_anew(parent) : @path = "\0#{name}"
        rescue SystemCallError => e
          raise BootError, "can't make a folder for the workers' sockets in #{parent}: " \
                           "#{e.message.sub(/ @ .*/, "")}. Name another folder with TMPDIR."
        end

        # @return [void]
        def remove
          return unless @lock

          remove_folder(@path)
          @lock.close
        rescue SystemCallError
          nil # it has gone already
        end

        private

        def name = "#{PREFIX}#{Random.urandom(RANDOM).unpack1("H*")}"

        # There are sockets in it, and no folders.
        def remove_folder(path)
          Dir.each_child(path) { |name| File.unlink(File.join(path, name)) }
          Dir.rmdir(path)
        end

        def make_anew(parent)
          clean(parent)
          # Another server that cleans up may be faster than the lock.
          make(parent) until @path && File.exist?(@path)
        end

        def make(parent)
          @lock&.close
          @path = File.join(parent, name)
          Dir.mkdir(@path, 0o700)
          @lock = File.open(@path)
          @lock.flock(File::LOCK_EX)
        rescue Errno::ENOENT
          @path = nil
        end

        def clean(parent)
          Dir.each_child(parent) do |name|
            remove_free(File.join(parent, name)) if name.start_with?(PREFIX)
          end
        rescue SystemCallError
          nil # it is for the next one
        end

        def remove_free(path)
          stat = File.lstat(path)
          return unless stat.directory? && stat.owned?

          File.open(path) { |lock| remove_folder(path) if lock.flock(File::LOCK_EX | File::LOCK_NB) }
        rescue SystemCallError
          nil # it has gone meanwhile
        end
      end
    end
  end
end
