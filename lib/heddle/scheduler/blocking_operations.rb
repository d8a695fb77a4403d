# frozen_string_literal: true

module Heddle
  class Scheduler
    # Calls without the GVL that Ruby >= 3.4 passes to the scheduler, because they might block. Ruby 3.4 passes a Proc,
    # Ruby >= 4.0 an opaque object. If the hook returns without having called that object, Ruby runs it in place.
    #
    # To run a call on another thread costs some 20 µs, more than most of these calls take. Quick calls that never wait
    # for another fiber run inline, all others on a thread. The name of the calling method decides.
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

      # The classes of those methods.
      OWNERS = /\A(?:File|File::Stat|Dir|IO|FileTest|#<Class:(?:File|Dir|IO)>)[#.]/

      # Opening a folder never waits for another program, unlike opening a file (a FIFO).
      OPENING_A_FOLDER = /\ADir(?:\.open|#initialize)\z/

      # It waits in the scheduler of the thread that runs it, so it can't run on a native thread.
      COPY_STREAM = "IO.copy_stream"

      private_constant :COPY_STREAM

      # See {in_signal_handler?}. Not a constant: other Ractors could not read it.
      @probe = Thread::Mutex.new

      class << self
        # @param scheduler [Scheduler]
        # @param work [#call]
        def run(scheduler, work)
          # Outside of the main Ractor, Ruby 3.4 crashes when the calling fiber is switched away.
          return run_in_place(work) unless Ractor.current.equal?(Ractor.main)

          # 0: this method; 1: the hook; 2: the method that asked.
          label = caller_locations(2, 1)&.first&.label.to_s
          if inline?(label) || Offload::Switch.refused? || scheduler.wait_in_place? || in_signal_handler?
            run_in_place(work)
          elsif label == COPY_STREAM || !Offload::Switch.operation?(work)
            scheduler.thread_pool.run { work.call }
          else
            run_operation(scheduler, work, label)
          end
        end

        # @param label [String] such as "File.stat" or "Dir#children"
        def inline?(label)
          (OWNERS.match?(label) && INLINE.key?(label[/[^#.]+\z/])) || OPENING_A_FOLDER.match?(label)
        end

        private

        # Ruby has no method for that, but in a signal's handler no mutex can be locked.
        def in_signal_handler?
          @probe.synchronize { false }
        rescue ThreadError
          true
        end

        # Calls only a Proc: Ruby runs its own operation in place if this does not call it.
        def run_in_place(work)
          Fiber.blocking { work.call } unless Offload::Switch.operation?(work)
        end

        # On an offload thread, which starts without Ruby's lock.
        def run_operation(scheduler, operation, label)
          return unless Offload::Switch.run_operation(operation, OWNERS.match?(label)).nil?

          scheduler.thread_pool.run { operation.call } # in a forked child
        end
      end
    end
  end
end
