# frozen_string_literal: true

require "fileutils"
require "tmpdir"

module Heddle
  class Server
    class Control
      # A folder for workers' sockets, this user's alone, that goes with the processes which use it: they hold a lock on
      # it, so that one whose server was killed is known by its lock being free, and the next server removes it.
      class Folder
        PREFIX = "heddle-workers-"
        private_constant :PREFIX

        # @return [String]
        attr_reader :path

        # @param parent [String] the folder that it is made in
        def initialize(parent = Dir.tmpdir)
          clean(parent)
          # Another server that cleans up may be faster than the lock.
          make(parent) until @path && File.exist?(@path)
        end

        # @return [void]
        def remove
          FileUtils.remove_entry(@path, true)
          @lock.close
        end

        private

        def make(parent)
          @lock&.close
          @path = Dir.mktmpdir(PREFIX, parent)
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

          File.open(path) { |lock| FileUtils.remove_entry(path, true) if lock.flock(File::LOCK_EX | File::LOCK_NB) }
        rescue SystemCallError
          nil # it has gone meanwhile
        end
      end
    end
  end
end
