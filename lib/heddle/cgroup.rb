# frozen_string_literal: true

module Heddle
  # The control groups (cgroups(7)) of this process, which limit a container: versions 2 and 1.
  #
  # @api private
  module Cgroup
    class << self
      # @param root [String] the folder that contains proc and sys
      # @param controller [String] such as "memory"
      # @param file [String] its file in version 2
      # @param old_files [Array<String>] its files in version 1
      # @return [Array<String>] the contents of these files in the group of this process and in the groups around it
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

      # In a container the path may be the host's, while the container's own group is the root.
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
