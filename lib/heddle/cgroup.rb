# frozen_string_literal: true

module Heddle
  # Reads the limits of a container from the control groups (cgroups(7)) of this process, in version 2 or 1.
  #
  # @api private
  module Cgroup
    class << self
      # @param root [String] the folder that contains proc and sys: "/", except in tests
      # @param controller [String] a controller of cgroups, such as "memory"
      # @param file [String] the controller's file in version 2
      # @param old_files [Array<String>] the controller's files in version 1
      # @return [Array<String>] one String for this process's group, and one for each group that contains it: the
      #   contents of the group's files, joined by a space, or "" if the group has none of these files. Empty if the
      #   system has no control groups
      def read(root, controller, file, *old_files)
        File.foreach(File.join(root, "proc/self/cgroup")).flat_map do |line|
          _, controllers, path = line.chomp.split(":", 3)
          if controllers == "" then texts(root, "", path, [file])
          elsif controllers.to_s.split(",").include?(controller) then texts(root, controller, path, old_files)
          else []
          end
        end
      rescue SystemCallError
        []
      end

      private

      # Reads the files in each folder from the mount point of the groups down to the path. In a container, the path may
      # be valid only on the host; the mount point is then the container's own group.
      def texts(root, mount, path, names)
        steps = path.split("/").reject(&:empty?)
        (0..steps.size).map do |depth|
          folder = File.join(root, "sys/fs/cgroup", mount, *steps.first(depth))
          names.filter_map { |name| text(File.join(folder, name)) }.join(" ")
        end
      end

      def text(path)
        File.read(path)
      rescue SystemCallError
        nil
      end
    end
  end
end
