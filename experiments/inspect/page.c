/* SPDX-License-Identifier: BSD-3-Clause */
#include "inspect/page.h"
int page_open(page_file *page, const char *path){return 0;}
void page_close(page_file *page){}
int page_write(page_file *page, const page_content *content){return 0;}
