# frozen_string_literal: true

require "rbconfig"
require "tmpdir"

module Torture
  # Builds shim.c, and tells it which call has to fail, through the page that both share.
  class Shim
    # As in shim.c.
    FUNCTIONS = %i[
      malloc calloc realloc accept4 recv recvmsg read readv send sendmsg writev sendfile epoll_ctl epoll_wait
      epoll_create1 eventfd getsockname setsockopt shutdown syscall
    ].freeze
    SHORT = -1
    PAGE = 4_096
    COUNTS = 20
    private_constant :PAGE, :COUNTS

    # @return [String, nil] the library; nil where none can be built
    def self.library
      @library ||= build
    end

    def self.build
      folder = Dir.mktmpdir("heddle-torture")
      Minitest.after_run { FileUtils.rm_rf(folder) }
      library = File.join(folder, "shim.so")
      source = File.join(__dir__, "shim.c")
      built = system("cc", "-std=gnu11", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl",
                     err: File.join(folder, "errors"))
      raise "the shim is not built: #{File.read(File.join(folder, "errors"))}" unless built

      library
    end
    private_class_method :build

    # Which calls of a function fail in this run: in the nightly run each. Elsewhere, with a selector that is not the
    # default one, a third of those: no more than a few of them are the selector's own.
    # @param most [Integer] calls of the function
    # @param step [Integer] with the default selector outside of the nightly run
    # @return [Enumerator<Integer>]
    def self.calls(most, step: 1)
      return (1..most).step(1) if Heddle::TestHelpers.nightly?

      (1..most).step(Heddle::TestHelpers.thorough? ? step : step * 3)
    end

    # @return [String] the shared page's file
    attr_reader :path

    def initialize
      @path = File.join(Dir.mktmpdir("heddle-torture"), "page")
      @file = File.open(@path, "w+b")
      @file.truncate(PAGE)
      @file.sync = true
    end

    # @return [Hash{String => String}] for a process in which calls are to fail
    def environment = { "LD_PRELOAD" => self.class.library, "HEDDLE_TORTURE" => path }

    # From now on the given call of a function does that; with number 0 calls are only counted.
    # @param function [Symbol]
    # @param number [Integer]
    # @param failure [Integer] an errno or {SHORT}
    def arm(function, number, failure = 0)
      write(0, [0])
      write(20, [0] * FUNCTIONS.size)
      write(4, [FUNCTIONS.index(function), number, failure, 0])
      write(0, [1])
    end

    # Calls pass from now on.
    def disarm = write(0, [0])

    # @return [Boolean] whether the call that {#arm} named has failed
    def fired? = read(16, 1).first == 1

    # @return [Hash{Symbol => Integer}] calls from heddle.so since {#arm}
    def counts = FUNCTIONS.zip(read(COUNTS, FUNCTIONS.size)).to_h

    def close
      @file.close
      FileUtils.rm_rf(File.dirname(@path))
    end

    private

    # The page is mapped by the other process: writing to its file and to the mapping is the same.
    def write(offset, numbers) = @file.pwrite(numbers.pack("l*"), offset)

    def read(offset, count) = @file.pread(count * 4, offset).unpack("L*")
  end
end
