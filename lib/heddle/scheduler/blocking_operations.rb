# frozen_string_literal: true

module Heddle
  class Scheduler
    # Implements the scheduler hook `blocking_operation_wait`. Ruby >= 3.4 calls the hook for calls that release the GVL
    # and may block. Ruby 3.4 passes such a call as a Proc, which the hook must call. Ruby >= 4.0 passes an opaque
    # object; if the hook returns without having called it, Ruby runs the call in place.
    #
    # Running a call on another thread costs about 20 µs, more than most of these calls take. So quick calls that never
    # wait for another fiber run inline, and all others on a thread. The name of the calling method decides.
    #
    # @api private
    module BlockingOperations
      # Methods that make only quick system calls on paths and descriptors. `open` is not included, because it waits for
      # the other end of a FIFO.
      INLINE = %w[
        access? atime basename birthtime blockdev? chardev? chmod chown ctime delete directory? empty? executable?
        executable_real? exist? expand_path file? flush ftype grpowned? identical? lchmod lchown link lstat mtime
        owned? pipe? readable? readable_real? readlink realdirpath realpath rename setgid? setuid? size size? socket?
        stat sticky? symlink symlink? truncate umask unlink utime world_readable? world_writable? writable?
        writable_real? zero? chdir children close each each_child entries exists? glob mkdir mkfifo rmdir
        close_read close_write
      ].to_h { |name| [name, true] }.freeze

      # The classes of the methods in INLINE.
      OWNERS = /\A(?:File|File::Stat|Dir|IO|FileTest|Heddle::Net::\w+|#<Class:(?:File|Dir|IO)>)[#.]/

      # Methods that open a folder. They never wait for another program, unlike methods that open a file, which may be a
      # FIFO.
      OPENING_A_FOLDER = /\ADir(?:\.open|#initialize)\z/

      # This method waits in the scheduler of the thread that runs it, so it needs a Ruby thread.
      COPY_STREAM = "IO.copy_stream"

      private_constant :COPY_STREAM

      # Used by {in_signal_handler?}. Not a constant, because constants must be shareable between Ractors (tested by
      # RactorConstantsTest), and a Mutex is not.
      @probe = Thread::Mutex.new

      class << self
        # Runs the call inline or on a thread, or leaves it to Ruby.
        # @param scheduler [Scheduler]
        # @param work [#call] the Proc or object that Ruby has passed
        def run(scheduler, work)
          # Outside of the main Ractor, Ruby 3.4 crashes when the calling fiber is switched away.
          return run_in_place(work) unless Ractor.current.equal?(Ractor.main)

          # Frame 0 is this method, 1 the hook, 2 the method that does the call.
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

        # Ruby has no method that reports whether a signal handler runs. But Mutex#lock raises in a signal handler.
        def in_signal_handler?
          @probe.synchronize { false }
        rescue ThreadError
          true
        end

        # Calls the work only if it is a Proc. If the work is Ruby's opaque object for an operation, and the hook does
        # not call it, Ruby itself runs the operation in place.
        def run_in_place(work)
          Fiber.blocking { work.call } unless Offload::Switch.operation?(work)
        end

        # Runs the operation on an offload thread, which does not have the GVL.
        def run_operation(scheduler, operation, label)
          return unless Offload::Switch.run_operation(operation, OWNERS.match?(label)).nil?

          # nil: this is a forked child, whose loop belongs to the parent process
          scheduler.thread_pool.run { operation.call }
        end
      end
    end
  end
end
