# frozen_string_literal: true

module Heddle
  class Scheduler
    # Calls that Ruby >= 3.4 hands to the scheduler because it might block: a Proc around an operation without the GVL.
    #
    # Handing it to a thread costs some 20 µs, more than most of these calls. The quick ones that can never wait for
    # another fiber run inline, the others on a thread, known by the method that asked.
    #
    # @api private
    module BlockingOperations
      # One system call on a path's name or on a descriptor. Not open: a FIFO waits there for its other end.
      INLINE = %w[
        access? atime basename birthtime blockdev? chardev? chmod chown ctime delete directory? empty? executable?
        executable_real? exist? expand_path file? flush ftype grpowned? identical? lchmod lchown link lstat mtime
        owned? pipe? readable? readable_real? readlink realdirpath realpath rename setgid? setuid? size size? socket?
        stat sticky? symlink symlink? truncate umask unlink utime world_readable? world_writable? writable?
        writable_real? zero? chdir children close each each_child entries exists? glob mkdir mkfifo rmdir
        close_read close_write
      ].to_h { |name| [name, true] }.freeze

      # Classes whose methods of those names are meant.
      OWNERS = /\A(?:File|File::Stat|Dir|IO|FileTest|#<Class:(?:File|Dir|IO)>)[#.]/

      # Opening a folder never waits for another program, unlike opening a file (a FIFO).
      OPENING_A_FOLDER = /\ADir(?:\.open|#initialize)\z/

      class << self
        # @param scheduler [Scheduler]
        # @param work [Proc]
        def run(scheduler, work)
          # Beside the main Ractor, Ruby 3.4 crashes when the fiber that has asked is switched away from.
          return Fiber.blocking { work.call } unless Ractor.current.equal?(Ractor.main)

          # 0: this method; 1: the hook; 2: the method that asked.
          label = caller_locations(2, 1)&.first&.label.to_s
          return Fiber.blocking { work.call } if inline?(label) || Offload::Switch.refused? || scheduler.wait_in_place?

          scheduler.offload_threads.run(&work)
        end

        # @param label [String] such as "File.stat" or "Dir#children"
        def inline?(label)
          (OWNERS.match?(label) && INLINE.key?(label[/[^#.]+\z/])) || OPENING_A_FOLDER.match?(label)
        end
      end
    end
  end
end
