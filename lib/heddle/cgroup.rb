# frozen_string_literal: true

module Heddle
  # The control groups (cgroups(7)) of this process, which limit a container: versions 2 and 1.
  #
  # @api private
  module Cgroup
    class << self
      # @param root [String] where the system's folders are
      # @param controller [String] such as "memory"
      # @param file [String] of version 2
      # @param old_files [Array<String>] of version 1
      # @return [Array<String>] what these files say in the group of this process and in those around it
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

      # A container may see the path as its host does, and its own group as the root.
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
