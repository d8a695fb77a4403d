# frozen_string_literal: true

require_relative "../disk_load"

module Bench
  module Databases
    module Rows
      # The mix with a table that is larger than the memory, while another program writes to the disk.
      class DiskMix < Mix
        # Percent that NeverBlock saved at least with a busy disk.
        LEAST = 51

        def self.variants = [new(10, 10, LEAST), new(50, 10, LEAST)]

        def key = "disk-#{super}"

        def title = "#{super}, a table larger than the memory, another program writes to the disk"

        def around(_quick)
          Servers.during(database, DiskLoad::SETTINGS, width: DiskLoad::WIDTH) do |place, server|
            DiskLoad.during(server) { yield({ place: }) }
          end
        end
      end
    end
  end
end
