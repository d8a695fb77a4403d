# frozen_string_literal: true

require "aws-sdk-s3"

client = Aws::S3::Client.new(endpoint: STAND_IN, force_path_style: true, region: "none", access_key_id: "a",
                             secret_access_key: "b", response_checksum_validation: "when_required")
proves_together("aws-sdk-s3") { |url| client.get_object(bucket: "gate", key: File.basename(url)).body.read }
