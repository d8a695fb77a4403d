# frozen_string_literal: true

require "heddle/options/option"

module Heddle
  module Options
    # Options of requests' bodies.
    BODIES = [
      Option.new(name: :body_folder, unit: :path, argument: "FOLDER", default: ->(_) { Dir.tmpdir },
                 default_words: "the system's temporary folder", example: 'body_folder "/var/tmp"',
                 text: "where the bodies of requests are written that do not fit into memory (body_buffer)",
                 details: "The files have no name and are gone when their request is over, or the process. Where " \
                          "the temporary folder is in memory (tmpfs), name one on a disk. See " \
                          "[Request bodies](bodies.md)."),
      Option.new(name: :stream_bodies, unit: :list, argument: "PATHS", none: "off", default: [],
                 example: 'stream_bodies "/uploads", "/grpc.Service"',
                 text: "the requests whose application reads the body while it comes: all, off, or those of these " \
                       "paths and below",
                 details: "For others the application is called when the body is complete, and reading it never " \
                          "waits. Streaming is for answers that begin before the request has ended (gRPC), and for " \
                          "refusing a body before it is sent. An application that reads such a body waits for the " \
                          "client, and in mode fiber other requests run meanwhile. A native library must not read " \
                          "such a body itself (Nokogiri::XML(env[\"rack.input\"])): read it first."),
      Option.limit(:body_limit, :bytes, 1_073_741_824, 0,
                   "size of a request's body; a larger one is answered with 413"),
      Option.limit(:body_buffer, :bytes, 65_536, 0,
                   "a request's body up to this size is kept in memory, a larger one in a file in body_folder. While " \
                   "all bodies have less than 16 MiB, up to four times this size, and 256 KiB at most, stay in memory"),
      Option.limit(:body_disk_limit, :bytes, 4_294_967_296, 0,
                   "size of all bodies that the server's processes together keep in files at once; beyond it the " \
                   "answer is 503, and 413 to a body that is larger by itself"),
      Option.limit(:body_rate, :rate, 240, 0,
                   "the least rate of a request's body, after body_grace; a slower one is answered with 408"),
      Option.limit(:body_grace, :seconds, 10, 0.001,
                   "how long a body may be slower than body_rate"),
      Option.limit(:body_pause, :seconds, 0.25, 0,
                   "how long a chunked body may pause, where stream_bodies counts, before the application is called " \
                   "with what there is"),
      Option.limit(:chunk_extension_limit, :bytes, 4_096, 0,
                   "size of all chunk extensions of a body; more is answered with 400"),
      Option.limit(:chunk_overhead_limit, :bytes, 16_384, 0,
                   "by how much the framing of a chunked body may outweigh its data; more is answered with 400")
    ].freeze
  end
end
