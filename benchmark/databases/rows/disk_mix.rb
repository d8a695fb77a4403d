# frozen_string_literal: true

require "tempfile"

module Bench
  module Databases
    module Rows
      # The mix while another program writes to the disk that the database reads from. The table fits in memory; so this
      # shows that nothing gets worse, and not what waiting for a disk saves.
      class DiskMix < Mix
        BLOCK = 65_536 # bytes
        BLOCKS = 1_024

        def self.variants = [new(50, 10, nil)]

        def key = "disk-#{super}"

        def title = "#{super}, another program writes to the disk"

        def around(quick)
          super do |extra|
            Tempfile.create("bench-disk") do |file|
              writer = Process.spawn(RbConfig.ruby, "-e", WRITER, file.path, BLOCK.to_s, BLOCKS.to_s)
              yield extra
            ensure
              stop(writer) if writer
            end
          end
        end

        # Random writes, each of which waits for the disk.
        WRITER = <<~RUBY
          path, size, blocks = ARGV[0], Integer(ARGV[1]), Integer(ARGV[2])
          data = Random.bytes(size)
          File.open(path, "r+b") { |file| loop { file.pwrite(data, rand(blocks) * size); file.fdatasync } }
        RUBY
        private_constant :WRITER

        private

        def stop(pid)
          Process.kill(:KILL, pid)
          Process.wait(pid)
        end
      end
    end
  end
end
